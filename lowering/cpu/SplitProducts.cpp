// Splits f32 operands into sums of two bf16 for AMX, if the product's precision permits it.
//
//     %0 = tile.dot %a, %b, %acc precision bf16x3 : tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>
//     // becomes
//     %al, %as, %bl, %bs = the large and the small parts of %a and %b : tensor<…xbf16>
//     %1 = tile.dot %as, %bl, %zero : …
//     %2 = tile.dot %al, %bs, %1 : …
//     %3 = tile.dot %al, %bl, %acc : …
//     %0 = arith.addf %3, (%2 where it is finite, else −0)
//
// The small part of an infinite operand is NaN, so products with small parts are dropped where they are not finite. The
// product of two small parts is always dropped.

#include "lowering/Passes.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/cpu/ProductUnit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_SPLITPRODUCTS
#include "lowering/cpu/Passes.h.inc"

namespace {
struct SplitProducts : impl::SplitProductsBase<SplitProducts> {
  void runOnOperation() override {
    getOperation().walk([](tile::DotOp dot) {
      if (splits(dot))
        splitProduct(dot);
    });
  }

  /// Whether the precision of `dot` permits the split, and AMX can multiply the parts.
  static bool splits(tile::DotOp dot) {
    const auto type = cast<RankedTensorType>(dot.getA().getType());
    return type.getElementType().isF32() && dot.getPrecision() == tile::Precision::BF16x3 &&
           takes(infoOf(Unit::bf16Tiles), BFloat16Type::get(type.getContext()), type.getShape().back());
  }

  static void splitProduct(tile::DotOp dot) {
    OpBuilder b(dot);
    const Location loc = dot.getLoc();
    const auto [largeA, smallA] = partsOf(b, dot.getA());
    const auto [largeB, smallB] = partsOf(b, dot.getB());
    const auto resultType = cast<RankedTensorType>(dot.getType());
    const auto all = [&](double number) -> Value {
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(resultType, static_cast<float>(number)));
    };
    const auto product = [&](Value left, Value right, Value acc) -> Value {
      return tile::DotOp::create(b, loc, left, right, acc, tile::Precision::IEEE);
    };
    Value small = product(largeA, smallB, product(smallA, largeB, all(0)));
    Value large = product(largeA, largeB, dot.getAcc());
    Value isFinite =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, arith::SubFOp::create(b, loc, small, small), all(0));
    Value rest = arith::SelectOp::create(b, loc, isFinite, small, all(-0.0));
    dot.replaceAllUsesWith(arith::AddFOp::create(b, loc, large, rest).getResult());
    dot.erase();
  }

  /// `tile` rounded to bf16, and the remainder. A transposed tile is split before the transposition, so that it can
  /// still be read directly.
  static std::pair<Value, Value> partsOf(OpBuilder &b, Value tile) {
    const Location loc = tile.getLoc();
    auto narrow = RankedTensorType::get(tile::shapeOf(tile.getType()), b.getBF16Type());
    if (auto transpose = tile.getDefiningOp<tile::TransposeOp>()) {
      const auto [large, small] = partsOf(b, transpose.getSource());
      const auto transposed = [&](Value part) -> Value {
        return tile::TransposeOp::create(b, loc, narrow, part, transpose.getPermutation());
      };
      return {transposed(large), transposed(small)};
    }
    Value large = arith::TruncFOp::create(b, loc, narrow, tile);
    Value left = arith::SubFOp::create(b, loc, tile, arith::ExtFOp::create(b, loc, tile.getType(), large));
    return {large, arith::TruncFOp::create(b, loc, narrow, left)};
  }
};
} // namespace

} // namespace kiln::lowering::cpu
