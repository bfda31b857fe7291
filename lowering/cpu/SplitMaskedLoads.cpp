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

#include "lowering/cpu/LlvmRewrites.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"

#include <numeric>

namespace kiln::lowering::cpu {

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
