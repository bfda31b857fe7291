// LLVM's part of the compiler: a short list of optimisations, then code generation for one CPU into memory.
//
// There are two differences from opt and llc. First, LLVM's library information has no C library, so that LLVM does not
// form calls of memset and memcpy or use libm. The object is searched for symbols that are not in Abi.h. Second, triple
// and data layout are set on the module before the first pass.

#include "lowering/cpu/CpuBackend.h"

#include "lowering/Abi.h"
#include "lowering/CodeGeneration.h"
#include "lowering/Crashes.h"

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
  // LLVM 22's pass against blocked store forwarding is disabled. It reads sizes of memory operands, which are missing
  // for a masked store that became a plain one. A copied tile with a constant mask is enough for a fatal error.
  setOption("x86-disable-avoid-SFB", "true");
  // The schedulers compare each memory access of a block with all others, up to this many. LLVM's 1000 takes half of
  // the compile time of a kernel unrolled by a host loop, such as a Cholesky factorisation. Code of `kernels/` is
  // unchanged.
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

/// LLVM's passes for loops that are blocked and vectorised already: remove redundancies of the conversions, normalise
/// loops for code generation, hoist invariants. On Kiln's kernels they take a third of the time of O3, for equally fast
/// code. Loops are rotated before MemorySSA is built, because each rotation would update it in time linear in the
/// function.
static constexpr llvm::StringLiteral optimisation = "function(sroa,early-cse,instcombine<no-verify-fixpoint>,"
                                                    "simplifycfg,rotate-loops,loop-mssa(licm),early-cse<memssa>,"
                                                    "instsimplify,simplifycfg)";

/// For the reference backend, whose code need not be fast. Its code has a loop for each operation. LLVM's loop rotation
/// would take time quadratic in the number of loops: 20 s for 3000.
static constexpr llvm::StringLiteral referenceOptimisation = "function(sroa,early-cse,simplifycfg)";

/// Disabled passes of code generation. A third of its time was spent on addresses, which x86 computes in its addressing
/// modes. A tenth was spent on scheduling after register allocation, although the CPU reorders instructions anyway.
/// Kernels are as fast without these passes.
static constexpr llvm::StringRef withoutPasses[] = {"canon-freeze", "loop-reduce", "post-RA-sched"};

/// Throws if the object needs a symbol that is not in Abi.h.
static void checkSymbols(llvm::StringRef bytes) {
  auto object = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!object)
    throw BackendError(llvm::toString(object.takeError()));
  for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
    const auto flags = llvm::cantFail(symbol.getFlags());
    const llvm::StringRef name = llvm::cantFail(symbol.getName());
    const bool undefined = (flags & llvm::object::SymbolRef::SF_Undefined) && !name.empty();
    if (undefined && name != abi::checkFailed && name != abi::printTile && name != abi::waits &&
        name != "_GLOBAL_OFFSET_TABLE_")
      throw BackendError("expected code that calls nothing but lowering/Abi.h, but it calls '" + name.str() + "'");
  }
}

/// Kiln's rewrites of vector code that LLVM lacks.
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
    // Code generation changes the module, so the listing is made from a copy.
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
