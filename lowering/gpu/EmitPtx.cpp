// LLVM's half of the GPU compiler: from vectors to scalars first, then a short list of optimisations, then PTX.
//
// A thread's share of a tile is one vector until here, so that all passes above deal with one operation where the
// thread will have one for each element. LLVM's scalarizer takes them apart, and again the shuffles that instcombine
// makes of what fills a register; vectors of PTX are in inline assembly, which lists its operands. Nothing may
// contract: mul.rn and add.rn stay two.

#include "lowering/gpu/EmitPtx.h"

#include "lowering/CodeGeneration.h"
#include "lowering/gpu/SinkValues.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Transforms/Utils/Local.h"

namespace kiln::lowering::gpu {

static const llvm::Triple &gpuTriple() {
  static const llvm::Triple triple("nvptx64-nvidia-cuda");
  return triple;
}

static const llvm::Target &nvptxBackend() {
  static const llvm::Target *const backend = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    std::string error;
    return llvm::TargetRegistry::lookupTarget(gpuTriple(), error);
  }();
  return *backend;
}

/// What LLVM is to know of a target whose own version of PTX lacks instructions that the module spells: the oldest
/// version that has them all. Nothing where it has them.
static std::string featuresFor(const llvm::Module &module, const GpuTarget &target) {
  static constexpr std::pair<llvm::StringLiteral, unsigned> since[] = {{"createpolicy.", 74},
                                                                       {"mma.m16n8k32.row.col.f32.e", 84}};
  unsigned version = target.ptxVersion;
  const auto see = [&](llvm::StringRef text) {
    for (const auto &[mnemonic, least] : since)
      if (version < least && text.contains(mnemonic))
        version = least;
  };
  for (const llvm::Function &function : module) { // an intrinsic is a function without instructions
    see(function.getName());
    for (const llvm::Instruction &instruction : llvm::instructions(function))
      if (const auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
        if (const auto *text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand()))
          see(text->getAsmString());
  }
  return version == target.ptxVersion ? "" : "+ptx" + std::to_string(version);
}

static std::unique_ptr<llvm::TargetMachine> createMachine(const GpuTarget &target, const std::string &features) {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(nvptxBackend().createTargetMachine(
      gpuTriple(), target.architecture, features, options, {}, {}, llvm::CodeGenOptLevel::Default));
}

static MachinePool &machinePool() {
  static MachinePool pool;
  return pool;
}

static constexpr llvm::StringLiteral optimisation =
    "function(scalarizer,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(loop-rotate,licm),"
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,scalarizer)";

/// What `insert` adds its element to, when that is a vector of one element in other clothes:
///
///     bitcast (insertelement <2 x i16> zeroinitializer, i16 %x, 0) to <2 x half>
static llvm::InsertElementInst *beginningBehindCast(llvm::InsertElementInst *insert) {
  auto *cast = llvm::dyn_cast<llvm::BitCastInst>(insert->getOperand(0));
  auto *first = cast ? llvm::dyn_cast<llvm::InsertElementInst>(cast->getOperand(0)) : nullptr;
  const auto lanes = [](llvm::Value *vector) {
    return llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  };
  const auto isNothing = [](llvm::Value *vector) {
    return llvm::isa<llvm::UndefValue, llvm::ConstantAggregateZero>(vector);
  };
  return first && lanes(first) == lanes(insert) && isNothing(first->getOperand(0)) ? first : nullptr;
}

/// Code generation spells a vector that fills a register by one instruction when its elements are inserted one right
/// after the other, and else one that is half built, where it would read a register that nobody wrote. So a cast
/// between two elements goes to the first, and no element is left open.
static void buildVectorsWhole(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *insert = llvm::dyn_cast<llvm::InsertElementInst>(&instruction);
      if (!insert)
        continue;
      llvm::Constant *const zeros = llvm::Constant::getNullValue(insert->getType());
      if (llvm::InsertElementInst *const first = beginningBehindCast(insert)) {
        llvm::IRBuilder<> builder(insert);
        llvm::Type *const element = llvm::cast<llvm::VectorType>(insert->getType())->getElementType();
        insert->setOperand(0, builder.CreateInsertElement(zeros, builder.CreateBitCast(first->getOperand(1), element),
                                                          first->getOperand(2)));
      } else if (llvm::isa<llvm::UndefValue>(insert->getOperand(0))) {
        insert->setOperand(0, zeros);
      }
    }
}

/// Code generation makes PTX's `min` and `max` of
///
///     x < 0 ? x : 0
///
/// and their like, though they give −0 where the comparison, to which zeros are equal, chooses +0. It does not where
/// the condition is frozen.
static void keepChosenZeros(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function)) {
      llvm::Value *left = nullptr, *right = nullptr;
      const llvm::SelectPatternFlavor flavor = llvm::matchSelectPattern(&instruction, left, right).Flavor;
      if (flavor != llvm::SPF_FMINNUM && flavor != llvm::SPF_FMAXNUM)
        continue;
      auto *select = llvm::cast<llvm::SelectInst>(&instruction);
      llvm::IRBuilder<> builder(select);
      select->setCondition(builder.CreateFreeze(select->getCondition()));
    }
}

/// Element `index` of a vector that inserts fill, or an instruction that takes it out.
static llvm::Value *elementOf(llvm::IRBuilder<> &builder, llvm::Value *vector, unsigned index) {
  for (llvm::Value *each = vector; auto *insert = llvm::dyn_cast<llvm::InsertElementInst>(each);
       each = insert->getOperand(0)) {
    const auto *at = llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2));
    if (!at)
      break;
    if (at->getZExtValue() == index)
      return insert->getOperand(1);
  }
  return builder.CreateExtractElement(vector, index);
}

/// Whether code generation sees into what uses the value, and might find that a part of it is enough.
static bool isComputedWith(const llvm::Value &value) {
  return llvm::any_of(value.users(), [](const llvm::User *user) { return !llvm::isa<llvm::CallInst>(user); });
}

/// Code generation leaves elements of a vector open that it thinks nobody needs, and the instruction that puts the
/// number together then reads a register which nobody wrote. So numbers that are computed with are put together from
/// their parts by arithmetic, whose parts are all there:
///
///     bitcast (<2 x i32> of %low and %high) to i64   →   or disjoint (zext %low), (shl (zext %high), 32)
static void packByArithmetic(llvm::Module &module) {
  llvm::SmallVector<llvm::BitCastInst *> casts;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *cast = llvm::dyn_cast<llvm::BitCastInst>(&instruction);
          cast && cast->getType()->isIntegerTy() && llvm::isa<llvm::InsertElementInst>(cast->getOperand(0)) &&
          isComputedWith(*cast))
        casts.push_back(cast);
  for (llvm::BitCastInst *cast : casts) {
    llvm::Value *const vector = cast->getOperand(0);
    auto *const type = llvm::cast<llvm::FixedVectorType>(vector->getType());
    const unsigned bits = type->getScalarSizeInBits();
    llvm::IRBuilder<> builder(cast);
    llvm::Value *whole = nullptr;
    for (unsigned i = 0; i < type->getNumElements(); ++i) {
      llvm::Value *part = builder.CreateBitCast(elementOf(builder, vector, i), builder.getIntNTy(bits));
      part = builder.CreateZExt(part, cast->getType());
      if (i > 0)
        part = builder.CreateShl(part, uint64_t{i} * bits);
      whole = whole ? builder.CreateOr(whole, part, "", /*IsDisjoint=*/true) : part;
    }
    cast->replaceAllUsesWith(whole);
    llvm::RecursivelyDeleteTriviallyDeadInstructions(cast);
  }
}

std::vector<char> emitPtx(llvm::Module &module, const GpuTarget &target, const StageSink &sink) {
  const LlvmErrors errors(module.getContext());
  const std::string features = featuresFor(module, target), key = target.architecture + features;
  std::unique_ptr<llvm::TargetMachine> machine =
      machinePool().take(key, [&] { return createMachine(target, features); });
  module.setTargetTriple(gpuTriple());
  module.setDataLayout(machine->createDataLayout());
  runPasses(module, *machine, optimisation);
  buildVectorsWhole(module);
  packByArithmetic(module);
  keepChosenZeros(module);
  sinkValues(module);
  if (sink)
    sink("llvm", textOf(module));
  const auto ptx = generate(module, *machine, llvm::CodeGenFileType::AssemblyFile);
  errors.check();
  machinePool().give(key, std::move(machine));
  if (sink)
    sink("ptx", std::string(ptx.begin(), ptx.end()));
  return {ptx.begin(), ptx.end()};
}

} // namespace kiln::lowering::gpu
