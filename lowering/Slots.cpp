// The slots of each argument in order: pointer, extents, strides; or a scalar.

#include "lowering/Slots.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeRange.h"

using namespace mlir;

namespace kiln::lowering {

std::vector<abi::Slot> slotsOf(TypeRange arguments) {
  std::vector<abi::Slot> slots;
  for (const auto [number, type] : llvm::enumerate(arguments)) {
    const int argument = static_cast<int>(number);
    const auto view = dyn_cast<MemRefType>(type);
    if (!view) {
      slots.push_back({abi::Slot::scalar, argument});
      continue;
    }
    slots.push_back({abi::Slot::pointer, argument});
    const auto addDynamic = [&](abi::Slot::Kind kind, ArrayRef<int64_t> values) {
      for (const auto [dimension, value] : llvm::enumerate(values))
        if (ShapedType::isDynamic(value))
          slots.push_back({kind, argument, static_cast<int>(dimension)});
    };
    addDynamic(abi::Slot::extent, view.getShape());
    addDynamic(abi::Slot::stride, view.getStridesAndOffset().first);
  }
  return slots;
}

} // namespace kiln::lowering
