// LLVM's part of the GPU compiler: scalarisation, a short list of optimisations, then PTX.
//
// A thread's share of a tile is one vector until here, so that earlier passes handle one operation instead of one for
// each element. `scalarizeVectors` splits them. LLVM's scalarizer splits the shuffles that instcombine creates for
// vectors that fill a register. Vectors of PTX are in inline assembly, which lists its operands. Contraction is
// disabled: mul.rn and add.rn stay separate.

#include "lowering/gpu/GpuBackend.h"

#include "lowering/CodeGeneration.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
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

/// The oldest PTX version that has all instructions of the module, as an LLVM feature, if the target's default version
/// lacks any; otherwise none.
static std::string featuresFor(const llvm::Module &module, const GpuTarget &target) {
  static constexpr std::pair<llvm::StringLiteral, unsigned> since[] = {{"createpolicy.", 74},
                                                                       {"mma.m16n8k32.row.col.f32.e", 84}};
  unsigned version = target.ptxVersion;
  const auto see = [&](llvm::StringRef text) {
    for (const auto &[mnemonic, least] : since)
      if (version < least && text.contains(mnemonic))
        version = least;
  };
  for (const llvm::Function &function : module) { // intrinsics are functions without a body
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
    "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,rotate-loops,loop-mssa(licm),"
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,scalarizer)";

/// Not run.
/// - Straight-line strength reduction compares each instruction with all similar ones, so its time is quadratic in the
///   length of a block. For sm_90a, `kiln-bench static` counts the same machine code without it for 117 of 128 kernels
///   of training and decoding, and at most 1.4 % more instructions for the others.
/// - N-ary reassociation changed none of 113 of these kernels.
/// - The analysis of where debuggers find variables: there are none.
static constexpr llvm::StringRef withoutPasses[] = {"slsr", "nary-reassociate", "livedebugvalues"};

/// The first insertion of the vector to which `insert` adds its element, if that is a bitcast of a vector with one
/// element set:
///
///     bitcast (insertelement <2 x i16> zeroinitializer, i16 %x, 0) to <2 x half>
static llvm::InsertElementInst *firstInsertionBeforeCast(llvm::InsertElementInst *insert) {
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

/// If the elements of a vector that fills a register are inserted consecutively, code generation builds it by one
/// instruction. Otherwise it builds it in parts, and reads an uninitialised register. So a cast between two insertions
/// is replaced by a cast of the first element, and no element is left undefined.
static void buildVectorsWhole(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *insert = llvm::dyn_cast<llvm::InsertElementInst>(&instruction);
      if (!insert)
        continue;
      llvm::Constant *const zeros = llvm::Constant::getNullValue(insert->getType());
      if (llvm::InsertElementInst *const first = firstInsertionBeforeCast(insert)) {
        llvm::IRBuilder<> builder(insert);
        llvm::Type *const element = llvm::cast<llvm::VectorType>(insert->getType())->getElementType();
        insert->setOperand(0, builder.CreateInsertElement(zeros, builder.CreateBitCast(first->getOperand(1), element),
                                                          first->getOperand(2)));
      } else if (llvm::isa<llvm::UndefValue>(insert->getOperand(0))) {
        insert->setOperand(0, zeros);
      }
    }
}

/// The rounded f32 that `insert` puts at `index` of a vector of two; otherwise null.
static llvm::FPTruncInst *roundedElement(const llvm::InsertElementInst *insert, uint64_t index) {
  const auto *at = insert ? llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2)) : nullptr;
  auto *rounded = insert ? llvm::dyn_cast<llvm::FPTruncInst>(insert->getOperand(1)) : nullptr;
  const bool isOne = at && at->getZExtValue() == index && rounded && rounded->getSrcTy()->isFloatTy() &&
                     llvm::cast<llvm::FixedVectorType>(insert->getType())->getNumElements() == 2;
  return isOne ? rounded : nullptr;
}

/// Whether all users of `value` except `vector` come after `place`, which is in the block of `value`.
static bool isUsedAfter(const llvm::Instruction *value, const llvm::Instruction *vector,
                        const llvm::Instruction *place) {
  return llvm::all_of(value->users(), [&](const llvm::User *each) {
    const auto *user = llvm::cast<llvm::Instruction>(each);
    return user == vector || user->getParent() != place->getParent() || place->comesBefore(user);
  });
}

/// Code generation rounds two numbers by one instruction if nothing else needs them. Numbers that are stored and used
/// further are rounded in pairs here. The pair is made after both numbers, so nothing before it may need them:
///
///     insertelement (insertelement …, (fptrunc %a), 0), (fptrunc %b), 1   →   llvm.nvvm.ff2bf16x2.rn(%b, %a)
static void roundInPairs(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *second = llvm::dyn_cast<llvm::InsertElementInst>(&instruction);
      auto *first = second ? llvm::dyn_cast<llvm::InsertElementInst>(second->getOperand(0)) : nullptr;
      llvm::FPTruncInst *const low = roundedElement(first, 0), *const high = roundedElement(second, 1);
      if (!low || !high || low == high || !first->hasOneUse() || (low->hasOneUse() && high->hasOneUse()) ||
          low->getParent() != high->getParent())
        continue;
      llvm::Instruction *const last = low->comesBefore(high) ? high : low;
      if (!isUsedAfter(low, first, last) || !isUsedAfter(high, second, last))
        continue;
      llvm::IRBuilder<> builder(last->getNextNode());
      llvm::Value *const pair = builder.CreateIntrinsic(
          low->getType()->isBFloatTy() ? llvm::Intrinsic::nvvm_ff2bf16x2_rn : llvm::Intrinsic::nvvm_ff2f16x2_rn,
          {high->getOperand(0), low->getOperand(0)});
      second->replaceAllUsesWith(pair);
      low->replaceAllUsesWith(builder.CreateExtractElement(pair, uint64_t{0}));
      high->replaceAllUsesWith(builder.CreateExtractElement(pair, uint64_t{1}));
      for (llvm::Instruction *dead : {static_cast<llvm::Instruction *>(second), static_cast<llvm::Instruction *>(low),
                                      static_cast<llvm::Instruction *>(high)})
        llvm::RecursivelyDeleteTriviallyDeadInstructions(dead);
    }
}

/// Code generation emits PTX's `min` and `max` for
///
///     x < 0 ? x : 0
///
/// and similar forms, although `min` may return −0 where the select, for which zeros are equal, returns +0. Freezing
/// the condition prevents that.
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

/// Element `index` of a vector built by insertions, or an extraction of it.
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

/// Whether code generation may narrow the value because of its users.
static bool isComputedWith(const llvm::Value &value) {
  return llvm::any_of(value.users(), [](const llvm::User *user) { return !llvm::isa<llvm::CallInst>(user); });
}

/// Code generation leaves unneeded elements of a vector undefined, and the instruction that combines the number then
/// reads an uninitialised register. So a number with other users than calls is combined from its parts by arithmetic:
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

/// If the two bytes of a 16-bit number become elements of a vector of bytes, code generation widens them to a vector of
/// four, half of it undefined. So they are taken by arithmetic:
///
///     extractelement (bitcast i16 %x to <2 x i8>), 1   →   trunc (lshr %x, 8)
static void takeBytesByArithmetic(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction);
      auto *cast = extract ? llvm::dyn_cast<llvm::BitCastInst>(extract->getVectorOperand()) : nullptr;
      const auto *index = extract ? llvm::dyn_cast<llvm::ConstantInt>(extract->getIndexOperand()) : nullptr;
      if (!cast || !index || !cast->getSrcTy()->isIntegerTy(16) || !extract->getType()->isIntegerTy(8))
        continue;
      llvm::IRBuilder<> builder(extract);
      llvm::Value *const shifted = builder.CreateLShr(cast->getOperand(0), 8 * index->getZExtValue());
      extract->replaceAllUsesWith(builder.CreateTrunc(shifted, extract->getType()));
      extract->eraseFromParent();
    }
}

std::vector<char> emitPtx(llvm::Module &module, const GpuTarget &target, const StageSink &sink) {
  const LlvmErrors errors(module.getContext());
  const std::string features = featuresFor(module, target), key = target.architecture + features;
  std::unique_ptr<llvm::TargetMachine> machine =
      machinePool().take(key, [&] { return createMachine(target, features); });
  module.setTargetTriple(gpuTriple());
  module.setDataLayout(machine->createDataLayout());
  scalarizeVectors(module);
  runPasses(module, *machine, optimisation);
  buildVectorsWhole(module);
  roundInPairs(module);
  packByArithmetic(module);
  takeBytesByArithmetic(module);
  keepChosenZeros(module);
  sinkValues(module);
  if (sink)
    sink("llvm", textOf(module));
  const auto ptx = generate(module, *machine, llvm::CodeGenFileType::AssemblyFile, nullptr, withoutPasses);
  errors.check();
  machinePool().give(key, std::move(machine));
  if (sink)
    sink("ptx", std::string(ptx.begin(), ptx.end()));
  return {ptx.begin(), ptx.end()};
}

} // namespace kiln::lowering::gpu
