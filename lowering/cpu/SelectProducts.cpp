// Decides which unit computes each product, and records it as an attribute:
//
//     cpu.unit
//       "bf16_pairs"      bf16 · bf16 + f32, two terms at a time
//       "i8_quads"        i8 · i8 + i32, four terms at a time
//       "bf16_tiles", "i8_tiles"   as above, with AMX tiles
//
// Such a unit reads the terms of one step as one word, so the product's depth is a multiple of it. Narrow operands of
// all other products are widened as separate tiles, so that later passes see one element type.
//
//     %0 = tile.dot %a, %b, %acc : tensor<8x16xf16>, tensor<16x32xf16>, tensor<8x32xf32>
//     // becomes
//     %1 = arith.extf %a : tensor<8x16xf16> to tensor<8x16xf32>
//     %2 = arith.extf %b : tensor<16x32xf16> to tensor<16x32xf32>
//     %0 = tile.dot %1, %2, %acc : tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>
//
// Units of bf16 flush denormals, and so may roundings that only they read; `cpu.flushes` marks those.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/analysis/TileUses.h"
#include "lowering/cpu/CpuDialect.h"
#include "lowering/cpu/ProductUnit.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_SELECTPRODUCTS
#include "lowering/cpu/Passes.h.inc"

namespace {
struct SelectProducts : impl::SelectProductsBase<SelectProducts> {
  using SelectProductsBase::SelectProductsBase;

  void runOnOperation() override {
    selectUnits();
    getOperation().walk([&](arith::TruncFOp rounding) {
      if (getElementTypeOrSelf(rounding.getType()).isBF16() && isReadByUnits(rounding))
        rounding->setAttr("cpu.flushes", UnitAttr::get(&getContext()));
    });
  }

  void selectUnits() {
    getOperation().walk([&](tile::DotOp dot) {
      if (StringRef unit = unitFor(dot); !unit.empty()) {
        dot->setAttr("cpu.unit", StringAttr::get(&getContext(), unit));
        return;
      }
      widen(dot, dot.getAMutable());
      widen(dot, dot.getBMutable());
    });
  }

  /// Whether only products with the attribute `cpu.unit` read `tile`.
  static bool isReadByUnits(Value tile) {
    return isa<RankedTensorType>(tile.getType()) && walkUses(tile, [](OpOperand &use) {
             if (auto dot = dyn_cast<tile::DotOp>(use.getOwner()))
               return dot->hasAttr("cpu.unit") ? Walk::leave : Walk::giveUp;
             return isa<tile::TransposeOp>(use.getOwner()) ? Walk::follow : Walk::giveUp;
           });
  }

  /// The name of the unit that computes `dot`; empty for FMAs.
  StringRef unitFor(tile::DotOp dot) const {
    Type operand = getElementTypeOrSelf(dot.getA().getType());
    const int64_t depth = tile::shapeOf(dot.getA().getType()).back();
    for (auto [unit, isThere] : {std::pair<Unit, bool>{Unit::bf16Tiles, tiles},
                                 {Unit::i8Tiles, tiles},
                                 {Unit::bf16Pairs, bf16Pairs},
                                 {Unit::i8Quads, i8Quads}})
      if (const UnitInfo &info = infoOf(unit); isThere && takes(info, operand, depth))
        return info.name;
    return "";
  }

  static void widen(tile::DotOp dot, OpOperand &operand) {
    Type element = cast<RankedTensorType>(dot.getType()).getElementType();
    OpBuilder b(dot);
    if (getElementTypeOrSelf(operand.get().getType()) != element)
      operand.set(widened(b, operand.get(), element));
  }

  /// `tile` converted to `element`. A transposed tile is widened before the transposition, so that it can still be read
  /// directly.
  static Value widened(OpBuilder &b, Value tile, Type element) {
    auto wide = RankedTensorType::get(tile::shapeOf(tile.getType()), element);
    if (auto transpose = tile.getDefiningOp<tile::TransposeOp>())
      return tile::TransposeOp::create(b, tile.getLoc(), wide, widened(b, transpose.getSource(), element),
                                       transpose.getPermutation());
    return isa<FloatType>(element) ? arith::ExtFOp::create(b, tile.getLoc(), wide, tile).getResult()
                                   : arith::ExtSIOp::create(b, tile.getLoc(), wide, tile).getResult();
  }
};
} // namespace

} // namespace kiln::lowering::cpu
