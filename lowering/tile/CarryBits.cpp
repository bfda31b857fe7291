// Converts types, constants and bitcasts of floats to those of integers.

#include "lowering/tile/CarryBits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kiln::lowering {

Type carriedAsBits(Type type, function_ref<bool(Type)> isCarried) {
  const Type element = getElementTypeOrSelf(type);
  if (!isa<FloatType>(element) || !isCarried(element))
    return type;
  const Type word = IntegerType::get(type.getContext(), element.getIntOrFloatBitWidth());
  if (auto memref = dyn_cast<MemRefType>(type)) // clone() would lose the layout
    return MemRefType::Builder(memref).setElementType(word).operator MemRefType();
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? Type(shaped.clone(word)) : word;
}

static void carryConstant(arith::ConstantOp constant, Type type) {
  if (auto real = dyn_cast<FloatAttr>(constant.getValue()); real && type != constant.getType())
    constant.setValueAttr(IntegerAttr::get(type, real.getValue().bitcastToAPInt()));
  else if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()); dense && type != constant.getType())
    constant.setValueAttr(dense.bitcast(getElementTypeOrSelf(type)));
}

void carryAsBits(func::FuncOp func, function_ref<Type(Type)> carried) {
  SmallVector<Operation *> bitcasts;
  func.walk([&](Operation *op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      carryConstant(constant, carried(constant.getType()));
    if (op->getName().getStringRef() != "llvm.call_intrinsic")
      for (Value result : op->getResults())
        result.setType(carried(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(carried(argument.getType()));
    if (isa<arith::BitcastOp>(op))
      bitcasts.push_back(op);
  });
  for (Operation *op : bitcasts)
    if (op->getOperand(0).getType() == op->getResult(0).getType()) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
  auto parameters = llvm::map_to_vector(func.getArgumentTypes(), carried);
  auto results = llvm::map_to_vector(func.getResultTypes(), carried);
  func.setType(FunctionType::get(func.getContext(), parameters, results));
}

} // namespace kiln::lowering
