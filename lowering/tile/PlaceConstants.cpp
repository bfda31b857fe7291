// Moves constant tiles that are not splats to read-only tables of the module.
//
// Such a tile becomes an ordinary load, so that a target's optimisations of loads apply. The table has the bytes of a
// view: little-endian, row-major, a bool in a byte.
//
//     %t = arith.constant dense<[1, 2, 3]> : tensor<3xi32>
//     ─>
//     memref.global "private" constant @table_0 : memref<12xi8> = dense<[1, 0, 0, 0, 2, …]> {alignment = 64 : i64}
//     …
//     %bytes = memref.get_global @table_0 : memref<12xi8>
//     %view = memref.view %bytes[%c0][] : memref<12xi8> to memref<3xi32>
//     %t = tile.load %view[%c0_i64] : memref<3xi32> -> tensor<3xi32>

#include "lowering/Abi.h"
#include "lowering/Diagnostics.h"
#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_PLACECONSTANTS
#include "lowering/Passes.h.inc"

/// The elements as bytes in memory.
static std::vector<char> bytesOf(DenseElementsAttr elements) {
  if (!elements.getElementType().isInteger(1)) {
    const ArrayRef<char> raw = elements.getRawData();
    return {raw.begin(), raw.end()};
  }
  const auto truths = elements.getValues<bool>();
  return {truths.begin(), truths.end()};
}

/// The first operation in the block of `op` that uses its result, directly or in a region.
static Operation *firstUseOf(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *const here = op->getBlock()->findAncestorOpInBlock(*user);
    if (!first || here->isBeforeInBlock(first))
      first = here;
  }
  return first;
}

namespace {
struct PlaceConstants : impl::PlaceConstantsBase<PlaceConstants> {
  using PlaceConstantsBase::PlaceConstantsBase;

  void runOnOperation() override {
    SmallVector<arith::ConstantOp> constants;
    getOperation().walk([&](arith::ConstantOp constant) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (elements && !elements.isSplat() && isa<RankedTensorType>(constant.getType()))
        constants.push_back(constant);
    });
    for (arith::ConstantOp constant : constants) {
      if (Operation *use = firstUseOf(constant)) // as late as possible, because it takes registers from there on
        constant.replaceAllUsesWith(load(constant, use));
      constant.erase();
    }
  }

  Value load(arith::ConstantOp constant, Operation *before) {
    OpBuilder builder(before);
    const Location loc = hasLine(constant.getLoc()) ? constant.getLoc() : before->getLoc();
    const auto tile = cast<RankedTensorType>(constant.getType());
    memref::GlobalOp table = tableOf(cast<DenseElementsAttr>(constant.getValue()), loc);
    Value bytes = memref::GetGlobalOp::create(builder, loc, table.getType(), table.getName());
    Value start = arith::ConstantIndexOp::create(builder, loc, 0);
    Value view = memref::ViewOp::create(builder, loc, MemRefType::get(tile.getShape(), storedType(tile)), bytes, start,
                                        ValueRange());
    Value zero = arith::ConstantIntOp::create(builder, loc, 0, 64);
    const SmallVector<Value> offsets(tile.getRank(), zero);
    return tile::LoadOp::create(builder, loc, tile, view, offsets, tile::Padding::Zero);
  }

  static Type storedType(RankedTensorType tile) {
    return tile.getElementType().isInteger(1) ? IntegerType::get(tile.getContext(), 8) : tile.getElementType();
  }

  /// The table with these elements; equal constants share one.
  memref::GlobalOp tableOf(DenseElementsAttr elements, Location loc) {
    memref::GlobalOp &known = tables[elements];
    if (known)
      return known;
    std::string name;
    do
      name = (abi::tablePrefix + Twine(count++)).str();
    while (getOperation().lookupSymbol(name));
    auto builder = OpBuilder::atBlockBegin(getOperation().getBody());
    const std::vector<char> bytes = bytesOf(elements);
    const auto size = static_cast<int64_t>(bytes.size());
    const auto type = MemRefType::get({size}, builder.getI8Type());
    const auto value = DenseElementsAttr::getFromRawBuffer(RankedTensorType::get({size}, builder.getI8Type()), bytes);
    return known = memref::GlobalOp::create(builder, loc, name, builder.getStringAttr("private"), type, value,
                                            /*constant=*/true, builder.getI64IntegerAttr(abi::scratchAlignment));
  }

  DenseMap<Attribute, memref::GlobalOp> tables;
  int count = 0;
};
} // namespace

} // namespace kiln::lowering
