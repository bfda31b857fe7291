// Operands of products that are narrower than the accumulator are widened, as tiles of their own: what comes after sees
// one element type in a product.
//
//     %0 = tile.dot %a, %b, %acc : tensor<8x16xbf16>, tensor<16x32xbf16>, tensor<8x32xf32>
//     // becomes
//     %1 = arith.extf %a : tensor<8x16xbf16> to tensor<8x16xf32>
//     %2 = arith.extf %b : tensor<16x32xbf16> to tensor<16x32xf32>
//     %0 = tile.dot %1, %2, %acc : tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>

#include "lowering/cpu/Passes.h"

#include "dialect/tile/TileDialect.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_WIDENDOTS
#include "lowering/cpu/Passes.h.inc"

namespace {
struct WidenDots : impl::WidenDotsBase<WidenDots> {
  using WidenDotsBase::WidenDotsBase;

  void runOnOperation() override {
    getOperation().walk([](tile::DotOp dot) {
      widen(dot, dot.getAMutable());
      widen(dot, dot.getBMutable());
    });
  }

  static void widen(tile::DotOp dot, OpOperand &operand) {
    Type element = cast<RankedTensorType>(dot.getType()).getElementType();
    auto type = cast<RankedTensorType>(operand.get().getType());
    if (type.getElementType() == element)
      return;
    OpBuilder b(dot);
    auto wide = RankedTensorType::get(type.getShape(), element);
    operand.set(isa<FloatType>(element) ? arith::ExtFOp::create(b, dot.getLoc(), wide, operand.get()).getResult()
                                        : arith::ExtSIOp::create(b, dot.getLoc(), wide, operand.get()).getResult());
  }
};
} // namespace

} // namespace kiln::lowering::cpu
