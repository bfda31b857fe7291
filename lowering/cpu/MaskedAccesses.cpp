// Rewrites masked accesses of memory in LLVM IR, before code generation.

#include "lowering/cpu/CpuBackend.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <optional>

namespace kiln::lowering::cpu {

// --- Stores of one lane ----------------------------------------------------------------------------------------------

// Works around a fault of LLVM 22 on AVX-512, which combines a narrowing conversion and the masked store of its result
// to a truncating store. For a constant mask with one true lane, it then emits a scalar store of the width before the
// conversion. So a tile of 17 bf16 also wrote its eighteenth element. Such stores are made scalar here:
//
//     call void @llvm.masked.store(<16 x i16> %narrow, ptr %p, <16 x i1> <i1 1, i1 0, …>)
//     // becomes
//     %x = extractelement <16 x i16> %narrow, i64 0
//     store i16 %x, ptr %p

/// The only true lane of a constant mask, or none.
static std::optional<unsigned> onlyLane(llvm::Value *mask) {
  auto *constant = llvm::dyn_cast<llvm::Constant>(mask);
  if (!constant)
    return std::nullopt;
  std::optional<unsigned> only;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const llvm::Constant *element = constant->getAggregateElement(lane);
    if (element && element->isNullValue())
      continue;
    if (!element || !element->isOneValue() || only)
      return std::nullopt;
    only = lane;
  }
  return only;
}

void storeSingleLanes(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *store = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (!store || store->getIntrinsicID() != llvm::Intrinsic::masked_store)
        continue;
      llvm::Value *value = store->getArgOperand(0), *pointer = store->getArgOperand(1);
      const std::optional<unsigned> lane = onlyLane(store->getArgOperand(2));
      if (!lane)
        continue;
      llvm::IRBuilder<> builder(store);
      const uint64_t offset = *lane * (value->getType()->getScalarSizeInBits() / 8);
      builder.CreateAlignedStore(builder.CreateExtractElement(value, uint64_t{*lane}),
                                 builder.CreateConstGEP1_64(builder.getInt8Ty(), pointer, offset),
                                 llvm::commonAlignment(store->getParamAlign(1).valueOrOne(), offset));
      store->eraseFromParent();
    }
}

// --- Runs of lanes ---------------------------------------------------------------------------------------------------

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

namespace {
/// A run of adjacent lanes; their number is a power of two.
struct Run {
  int first, count;
};
} // namespace

/// The runs of a mask's true lanes; none if the mask is not constant.
static std::optional<llvm::SmallVector<Run>> findRuns(llvm::Value *mask) {
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

  llvm::Value *pointerTo(Run run) {
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
      builder.CreateAlignedStore(part, pointerTo(run), alignOf(run));
    }
  }

  llvm::Value *load(llvm::ArrayRef<Run> runs) {
    const auto lanes = static_cast<int>(type->getNumElements());
    llvm::Value *result = other;
    for (const Run run : runs) {
      if (run.count == 1) {
        llvm::Value *element = builder.CreateAlignedLoad(type->getElementType(), pointerTo(run), alignOf(run));
        result = builder.CreateInsertElement(result, element, static_cast<uint64_t>(run.first));
        continue;
      }
      auto *partType = llvm::FixedVectorType::get(type->getElementType(), run.count);
      llvm::Value *part = builder.CreateAlignedLoad(partType, pointerTo(run), alignOf(run));
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
      const auto runs = findRuns(masked.mask);
      if (!runs || !masked.pays(*runs))
        continue;
      if (masked.isStore)
        masked.store(*runs);
      else
        access->replaceAllUsesWith(masked.load(*runs));
      access->eraseFromParent();
    }
}

// --- Loads of two registers ------------------------------------------------------------------------------------------

// Works around a fault of LLVM 22, which legalises a masked load of two AVX2 registers by halving it. If the mask is
// known to be false in one half and unknown in the other, LLVM loads the false half without a mask. For example, eight
// i64 at column −6 of a row that may be outside the view read the four elements before the view.
//
// The cause: only the sign bit of a mask's lane matters there, so X86's `combineMaskedLoad` lets `SimplifyDemandedBits`
// represent false lanes as 1. Then `combineMaskedLoadConstantMask` interprets every nonzero lane as true. It finds the
// first and last lanes true, and loads the whole half. `llc-22 -mcpu=x86-64-v3` shows it for the first two lines below,
// and for masks of `select`. So such loads are halved here, and false halves are not loaded:
//
//     %m = and <8 x i1> %row_inside, <i1 0, i1 0, i1 0, i1 0, i1 0, i1 0, i1 1, i1 1>
//     %v = call <8 x i64> @llvm.masked.load(ptr %p, %m, zeroinitializer)
//     // becomes
//     %high = call <4 x i64> @llvm.masked.load(ptr (%p + 32), (high half of %m), zeroinitializer)
//     %v = shufflevector zeroinitializer, %high
//
// LLVM is correct for constant masks, for unknown masks, on AVX-512 with its mask registers, and for masked stores.

/// The lanes of a mask that are known to be false.
static llvm::SmallBitVector lanesOff(llvm::Value *mask, int effort = 6) {
  using namespace llvm::PatternMatch;
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask->getType())->getNumElements();
  llvm::SmallBitVector off(lanes);
  if (auto *constant = llvm::dyn_cast<llvm::Constant>(mask)) {
    for (unsigned lane = 0; lane < lanes; ++lane)
      if (llvm::Constant *element = constant->getAggregateElement(lane))
        off[lane] = element->isNullValue();
    return off;
  }
  if (effort == 0)
    return off;
  llvm::Value *a = nullptr, *b = nullptr, *condition = nullptr;
  if (match(mask, m_LogicalAnd(m_Value(a), m_Value(b))))
    return lanesOff(a, effort - 1) |= lanesOff(b, effort - 1);
  if (match(mask, m_LogicalOr(m_Value(a), m_Value(b))) ||
      match(mask, m_Select(m_Value(condition), m_Value(a), m_Value(b))))
    return lanesOff(a, effort - 1) &= lanesOff(b, effort - 1);
  if (match(mask, m_Freeze(m_Value(a))))
    return lanesOff(a, effort - 1);
  return off;
}

/// Loads register by register, without those whose lanes are all false.
static llvm::Value *loadParts(llvm::IntrinsicInst &load, const llvm::SmallBitVector &off, unsigned partLanes) {
  llvm::IRBuilder<> builder(&load);
  llvm::Value *pointer = load.getArgOperand(0), *mask = load.getArgOperand(1), *passThrough = load.getArgOperand(2);
  auto *type = llvm::cast<llvm::FixedVectorType>(load.getType());
  auto *partType = llvm::FixedVectorType::get(type->getElementType(), partLanes);
  const uint64_t bytes = type->getScalarSizeInBits() / 8;
  const llvm::Align align = load.getParamAlign(0).valueOrOne();
  llvm::SmallVector<llvm::Value *> parts;
  for (unsigned first = 0; first < type->getNumElements(); first += partLanes) {
    llvm::SmallVector<int> lanes(partLanes);
    std::iota(lanes.begin(), lanes.end(), first);
    llvm::Value *part = builder.CreateShuffleVector(passThrough, lanes);
    if (!llvm::all_of(lanes, [&](int lane) { return off[lane]; })) {
      llvm::Value *at = builder.CreateConstGEP1_64(builder.getInt8Ty(), pointer, first * bytes);
      part = builder.CreateMaskedLoad(partType, at, llvm::commonAlignment(align, first * bytes),
                                      builder.CreateShuffleVector(mask, lanes), part);
    }
    parts.push_back(part);
  }
  return llvm::concatenateVectors(builder, parts);
}

void splitMaskedLoads(llvm::Module &module, int64_t registerBits) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
      auto *load = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (!load || load->getIntrinsicID() != llvm::Intrinsic::masked_load ||
          load->getType()->getPrimitiveSizeInBits() <= static_cast<uint64_t>(registerBits))
        continue;
      const llvm::SmallBitVector off = lanesOff(load->getArgOperand(1));
      if (off.none() || llvm::isa<llvm::Constant>(load->getArgOperand(1)))
        continue;
      load->replaceAllUsesWith(loadParts(*load, off, registerBits / load->getType()->getScalarSizeInBits()));
      load->eraseFromParent();
    }
}

} // namespace kiln::lowering::cpu
