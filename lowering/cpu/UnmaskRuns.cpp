// Replaces constant masks by shorter vectors. The last vector of a row has a constant mask whose first lanes are true.
// AVX2 has masks only for elements of 4 and 8 bytes; LLVM scalarises the others. On AMD's cores a masked store takes
// the time of ten stores. Runs of true lanes are accessed by vectors of 8, 4, 2 and 1 lanes instead:
//
//     call void @llvm.masked.store(<8 x float> %v, ptr %p, <8 x i1> <i1 1, i1 1, i1 1, i1 1, i1 1, i1 0, i1 0, i1 0>)
//     // becomes
//     %low = shufflevector <8 x float> %v, <0, 1, 2, 3>
//     store <4 x float> %low, ptr %p
//     %x = extractelement <8 x float> %v, i64 4
//     store float %x, ptr (%p + 16)
//
// Not if that needs many vectors: with hardware masks a masked load is a single instruction.

#include "lowering/cpu/LlvmRewrites.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <optional>

namespace kiln::lowering::cpu {

namespace {
/// A run of adjacent lanes; their number is a power of two.
struct Run {
  int first, count;
};
} // namespace

/// The runs of a mask's true lanes; none if the mask is not constant.
static std::optional<llvm::SmallVector<Run>> runsOf(llvm::Value *mask) {
  auto *constant = llvm::dyn_cast<llvm::Constant>(mask);
  if (!constant)
    return std::nullopt;
  const auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements());
  llvm::SmallVector<Run> runs;
  int begin = 0; // begin of the current run
  for (int lane = 0; lane <= lanes; ++lane) {
    llvm::Constant *element = lane < lanes ? constant->getAggregateElement(lane) : nullptr;
    if (lane < lanes && (!element || !(element->isNullValue() || element->isOneValue())))
      return std::nullopt;
    if (element && element->isOneValue())
      continue;
    while (begin < lane) {
      const auto count = static_cast<int>(llvm::bit_floor(static_cast<unsigned>(lane - begin)));
      runs.push_back({begin, count});
      begin += count;
    }
    begin = lane + 1;
  }
  return runs;
}

static llvm::SmallVector<int> lanesOf(Run run) {
  llvm::SmallVector<int> lanes(run.count);
  std::iota(lanes.begin(), lanes.end(), run.first);
  return lanes;
}

namespace {
/// An access with a mask.
struct Masked {
  explicit Masked(llvm::IntrinsicInst &access)
      : access(access), builder(&access), isStore(access.getIntrinsicID() == llvm::Intrinsic::masked_store),
        pointer(access.getArgOperand(isStore ? 1 : 0)), mask(access.getArgOperand(isStore ? 2 : 1)),
        other(access.getArgOperand(isStore ? 0 : 2)), type(llvm::cast<llvm::FixedVectorType>(other->getType())) {}

  /// Whether runs are faster than the mask.
  bool pays(llvm::ArrayRef<Run> runs) const {
    if (type->getScalarSizeInBits() < 32)
      return true;
    constexpr size_t fewStores = 4;
    return isStore ? runs.size() <= fewStores : runs.size() <= 1;
  }

  llvm::Value *placeOf(Run run) {
    return builder.CreateConstGEP1_64(builder.getInt8Ty(), pointer, run.first * bytes());
  }
  llvm::Align alignOf(Run run) const {
    return llvm::commonAlignment(access.getParamAlign(isStore ? 1 : 0).valueOrOne(), run.first * bytes());
  }
  uint64_t bytes() const { return type->getScalarSizeInBits() / 8; }

  void store(llvm::ArrayRef<Run> runs) {
    for (const Run run : runs) {
      llvm::Value *part = run.count == 1 ? builder.CreateExtractElement(other, static_cast<uint64_t>(run.first))
                                         : builder.CreateShuffleVector(other, lanesOf(run));
      builder.CreateAlignedStore(part, placeOf(run), alignOf(run));
    }
  }

  llvm::Value *load(llvm::ArrayRef<Run> runs) {
    const auto lanes = static_cast<int>(type->getNumElements());
    llvm::Value *result = other;
    for (const Run run : runs) {
      if (run.count == 1) {
        llvm::Value *element = builder.CreateAlignedLoad(type->getElementType(), placeOf(run), alignOf(run));
        result = builder.CreateInsertElement(result, element, static_cast<uint64_t>(run.first));
        continue;
      }
      auto *partType = llvm::FixedVectorType::get(type->getElementType(), run.count);
      llvm::Value *part = builder.CreateAlignedLoad(partType, placeOf(run), alignOf(run));
      llvm::SmallVector<int> widened(lanes, -1), order(lanes);
      std::iota(order.begin(), order.end(), 0);
      for (int lane = 0; lane < run.count; ++lane) {
        widened[lane] = lane;
        order[run.first + lane] = lanes + lane;
      }
      result = builder.CreateShuffleVector(result, builder.CreateShuffleVector(part, widened), order);
    }
    return result;
  }

  llvm::IntrinsicInst &access;
  llvm::IRBuilder<> builder;
  const bool isStore;
  llvm::Value *pointer, *mask, *other; // the stored value, or the value of lanes that are not loaded
  llvm::FixedVectorType *type;
};
} // namespace

void unmaskRuns(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *access = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (!access || (access->getIntrinsicID() != llvm::Intrinsic::masked_store &&
                      access->getIntrinsicID() != llvm::Intrinsic::masked_load))
        continue;
      Masked masked(*access);
      const auto runs = runsOf(masked.mask);
      if (!runs || !masked.pays(*runs))
        continue;
      if (masked.isStore)
        masked.store(*runs);
      else
        access->replaceAllUsesWith(masked.load(*runs));
      access->eraseFromParent();
    }
}

} // namespace kiln::lowering::cpu
