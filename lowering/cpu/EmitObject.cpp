// LLVM's half of the compiler: a short list of optimisations, then code generation for one CPU into memory.
//
// Two things differ from what opt and llc do. No C library exists for LLVM here, so that it neither forms calls of
// memset and memcpy nor relies on libm; the finished object is searched for symbols that Abi.h does not know. Triple
// and data layout are on the module before the first pass.

#include "lowering/cpu/EmitObject.h"

#include "lowering/Abi.h"
#include "lowering/CodeGeneration.h"
#include "lowering/FatalErrors.h"
#include "lowering/cpu/InterleaveChains.h"
#include "lowering/cpu/SplitMaskedLoads.h"
#include "lowering/cpu/StoreSingleLanes.h"
#include "lowering/cpu/UnmaskRuns.h"
#include "lowering/cpu/WidenHalves.h"

#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <memory>

namespace kiln::lowering::cpu {

const llvm::Triple &cpuTriple() {
  static const llvm::Triple triple("x86_64-unknown-linux-gnu");
  return triple;
}

/// Sets one of LLVM's options for the whole process.
static void setOption(llvm::StringRef name, llvm::StringRef value) {
  auto &options = llvm::cl::getRegisteredOptions();
  if (const auto option = options.find(name); option != options.end())
    option->second->addOccurrence(1, name, value);
}

static void setOptions() {
  // LLVM 22's pass against blocked store forwarding asks memory operands for sizes that those of a masked store which
  // became a plain one do not have, a fatal error: a tile copied where its mask is known is enough. It is left out.
  setOption("x86-disable-avoid-SFB", "true");
  // The schedulers compare each access of a block with all others, up to this many: with LLVM's 1000 that is half of
  // the time of a kernel that a host loop unrolls, such as a Cholesky factorisation. `kernels/` compile to the same.
  setOption("dag-maps-huge-region", "100");
}

const llvm::Target &x86Backend() {
  static const llvm::Target *const backend = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    setOptions();
    std::string error;
    return llvm::TargetRegistry::lookupTarget(cpuTriple(), error);
  }();
  return *backend;
}

// --- Optimisation and code generation --------------------------------------------------------------------------------

static std::unique_ptr<llvm::TargetMachine> createMachine(const CpuTarget &target, bool isReference) {
  return std::unique_ptr<llvm::TargetMachine>(x86Backend().createTargetMachine(
      cpuTriple(), target.cpu, target.features, llvm::TargetOptions(), llvm::Reloc::PIC_, llvm::CodeModel::Small,
      isReference ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Default));
}

static MachinePool &machinePool() {
  static MachinePool pool;
  return pool;
}

static const llvm::TargetLibraryInfoImpl &noLibrary() {
  static const llvm::TargetLibraryInfoImpl library = [] {
    llvm::TargetLibraryInfoImpl none(cpuTriple());
    none.disableAllFunctions();
    return none;
  }();
  return library;
}

/// What is left to do for LLVM on loops that are blocked and vectorised already: clean up what the conversions repeat,
/// put loops into the form that code generation knows, move out what does not change. On our kernels it takes a third
/// of the time of O3, and their code is as fast.
static constexpr llvm::StringLiteral optimisation =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(loop-rotate,licm),early-cse<memssa>,"
    "instsimplify,simplifycfg)";

/// For the oracle, whose code is compared with and need not be fast. It makes a loop of each operation: turning a loop
/// round would cost LLVM time in proportion to the loops that follow it, 20 s for 3000 of them.
static constexpr llvm::StringLiteral referenceOptimisation = "function(sroa,early-cse,simplifycfg)";

/// Left out of code generation: a third of its time went into addresses that x86 adds up by itself, a tenth into the
/// order of instructions once they have registers, which the CPU changes again. Our kernels are as fast without.
static constexpr llvm::StringRef withoutPasses[] = {"canon-freeze", "loop-reduce", "post-RA-sched"};

/// Throws when the object needs a symbol that Abi.h does not promise.
static void checkSymbols(llvm::StringRef bytes) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object)
    throw BackendError(llvm::toString(object.takeError()));
  for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
    const auto flags = llvm::cantFail(symbol.getFlags());
    const llvm::StringRef name = llvm::cantFail(symbol.getName());
    const bool undefined = (flags & llvm::object::SymbolRef::SF_Undefined) && !name.empty();
    if (undefined && name != abi::checkFailed && name != abi::printTile && name != "_GLOBAL_OFFSET_TABLE_")
      throw BackendError("expected code that calls nothing but lowering/Abi.h, but it calls '" + name.str() + "'");
  }
}

/// What LLVM does not do for vectors.
static void rewriteVectors(llvm::Module &module, const CpuTarget &target) {
  storeSingleLanes(module);
  if (target.vectorBits == 256) {
    unmaskRuns(module);
    splitMaskedLoads(module, target.vectorBits);
  }
  interleaveChains(module, target.registers);
  if (target.fastPermutes)
    widenHalves(module, target.vectorBits);
}

std::vector<char> emitObject(llvm::Module &module, const CpuTarget &target, bool isReference, const StageSink &sink) {
  const LlvmErrors errors(module.getContext());
  const std::string kind = target.cpu + ";" + target.features + (isReference ? ";reference" : "");
  std::unique_ptr<llvm::TargetMachine> machine =
      machinePool().take(kind, [&] { return createMachine(target, isReference); });
  module.setTargetTriple(cpuTriple());
  module.setDataLayout(machine->createDataLayout());
  runPasses(module, *machine, isReference ? referenceOptimisation : optimisation, &noLibrary());
  if (!isReference)
    rewriteVectors(module, target);
  if (sink) {
    sink("llvm", textOf(module));
    // Code generation changes the module: the listing is made from a copy.
    const auto copy = llvm::CloneModule(module);
    const auto listing = generate(*copy, *machine, llvm::CodeGenFileType::AssemblyFile, &noLibrary(), withoutPasses);
    sink("asm", std::string(listing.begin(), listing.end()));
  }
  const auto bytes = generate(module, *machine, llvm::CodeGenFileType::ObjectFile, &noLibrary(), withoutPasses);
  errors.check();
  machinePool().give(kind, std::move(machine));
  checkSymbols(llvm::StringRef(bytes.data(), bytes.size()));
  return std::vector<char>(bytes.begin(), bytes.end());
}

} // namespace kiln::lowering::cpu
