// One pattern for all functions.

#include "lowering/math/FunctionPatterns.h"

#include "dialect/tile/TileDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace kiln::lowering {

bool isScalarOrVector(Type type, function_ref<bool(Type)> isElement) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector && isa<ShapedType>(type))
    return false;
  return (!vector || vector.getRank() == 1) && isElement(getElementTypeOrSelf(type));
}

namespace {
template <class OpTy, auto function> struct LowerFunction : OpRewritePattern<OpTy> {
  LowerFunction(MLIRContext *context, ScaleInstruction scale, bool (*canScale)(Type))
      : OpRewritePattern<OpTy>(context), instruction(scale), canScale(canScale) {}

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    if (!isScalarOrVector(op.getType(), [](Type element) { return element.isF32() || element.isF64(); }))
      return rewriter.notifyMatchFailure(op, "not a scalar or vector of f32 or f64");
    const auto scale = [&](Value x, Value n, Value keep) { return instruction(rewriter, op.getLoc(), x, n, keep); };
    const bool scales = instruction && canScale(op.getType());
    MathFunctions functions(rewriter, op.getLoc(), op.getType(), scales ? MathFunctions::Scale(scale) : nullptr);
    if constexpr (std::is_invocable_v<decltype(function), MathFunctions &, Value, Value>)
      rewriter.replaceOp(op, (functions.*function)(op.getLhs(), op.getRhs()));
    else
      rewriter.replaceOp(op, (functions.*function)(op.getOperand()));
    return success();
  }

  const ScaleInstruction instruction;
  bool (*const canScale)(Type);
};
} // namespace

void addFunctionPatterns(RewritePatternSet &patterns, ScaleInstruction scale, bool (*canScale)(Type)) {
#define KILN_FUNCTION(name, operation, ...)                                                                            \
  patterns.add<LowerFunction<math::operation, &MathFunctions::name>>(patterns.getContext(), scale, canScale);
#define KILN_FUNCTION_OF_TWO KILN_FUNCTION
#include "dialect/tile/Functions.def"
  patterns.add<LowerFunction<arith::RemFOp, &MathFunctions::remainder>>(patterns.getContext(), scale, canScale);
}

void removeAccuracies(Operation *root) {
  root->walk([](arith::DivFOp division) { tile::setAccuracy(division, tile::Accuracy::Full); });
}

} // namespace kiln::lowering
