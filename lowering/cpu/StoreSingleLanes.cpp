// Works around a fault of LLVM 22 on AVX-512, which combines a narrowing conversion and the masked store of its result
// to a truncating store. For a constant mask with one true lane, it then emits a scalar store with the width before the
// conversion: a tile of 17 bf16 also wrote its eighteenth element. Such stores are made scalar here:
//
//     call void @llvm.masked.store(<16 x i16> %narrow, ptr %p, <16 x i1> <i1 1, i1 0, …>)
//     // becomes
//     %x = extractelement <16 x i16> %narrow, i64 0
//     store i16 %x, ptr %p

#include "lowering/cpu/LlvmRewrites.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#include <optional>

namespace kiln::lowering::cpu {

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

} // namespace kiln::lowering::cpu
