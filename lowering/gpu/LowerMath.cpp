// Expands transcendental functions: by the GPU's approximate instructions if allowed, otherwise by the polynomials of
// MathFunctions.h, as on every target. Also works around LLVM's handling of shifts, minima and maxima.

#include "dialect/tile/TileDialect.h"
#include "lowering/Passes.h"
#include "lowering/math/MathFunctions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include <numbers>

using namespace mlir;

namespace kiln::lowering::gpu {

// --- Approximate instructions ----------------------------------------------------------------------------------------

// Functions by the approximate instructions of PTX. With the accuracy `fast` these flush denormal arguments and
// results. dialect/NUMERICS.md has the bounds of the PTX ISA ("Floating Point Instructions") and of the functions. A
// relative error r is at most r · 2^24 ulp.
//
//     %0 = math.exp2 %x {tile.accuracy = "fast"} : vector<2xf32>
//     // becomes
//     %1:2 = vector.to_elements %x : vector<2xf32>
//     %2 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%1#0) : (f32) -> f32
//     %3 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%1#1) : (f32) -> f32
//     %0 = vector.from_elements %2, %3 : vector<2xf32>

namespace {
/// Instructions on scalars or vectors of f32.
class Instructions {
public:
  Instructions(PatternRewriter &rewriter, Location loc) : emit(rewriter, loc), rewriter(rewriter), loc(loc) {}

  Value exp2(Value x) { return call("llvm.nvvm.ex2.approx.ftz", x); }
  Value log2(Value x) { return call("llvm.nvvm.lg2.approx.ftz.f", x); }
  /// LLVM emits tanh.approx for it.
  Value tanh(Value x) { return emit.make<LLVM::TanhOp>(x, LLVM::FastmathFlags::afn); }
  Value fastRsqrt(Value x) { return call("llvm.nvvm.rsqrt.approx.ftz.f", x); }
  /// A reciprocal is one instruction. Of a division by 1, ptxas keeps the product's flush of denormal numbers.
  Value divide(Value a, Value b) {
    if (matchPattern(a, m_OneFloat()))
      return call("llvm.nvvm.rcp.approx.ftz.f", b);
    return call("llvm.nvvm.div.approx.ftz.f", {a, b});
  }

  /// 2^(x · log2 e). The product has a relative error of 2^-24, and the constant one of 2^-26.1. They add 1.3 · |x| ·
  /// 2^-24 to the relative error of the exponential.
  Value exp(Value x) { return exp2(emit.make<arith::MulFOp>(x, emit.real(x.getType(), std::numbers::log2e))); }
  Value log(Value x) { return emit.make<arith::MulFOp>(log2(x), emit.real(x.getType(), std::numbers::ln2)); }

  /// y · (1 + (1 − x · y²) / 2), a Newton step from y = rsqrt(x) · (1 + δ), |δ| ≤ 2^-22.9. Its errors are half of the
  /// rounding of x · y, 2^-25 or 0.5 ulp at most, its own rounding, 0.5 ulp, and 3/2 · δ², less than 0.01 ulp. For 0,
  /// infinity and NaN the instruction's result is kept.
  Value rsqrt(Value x) {
    const Value y = call("llvm.nvvm.rsqrt.approx.f", x);
    const Value product = emit.make<arith::NegFOp>(emit.make<arith::MulFOp>(x, y));
    const Value rest = emit.make<math::FmaOp>(product, y, emit.real(x.getType(), 1));
    const Value half = emit.make<arith::MulFOp>(y, emit.real(x.getType(), 0.5));
    const Value better = emit.make<math::FmaOp>(half, rest, y);
    return emit.select(emit.compare(arith::CmpFPredicate::UNO, rest, rest), y, better);
  }

private:
  /// An intrinsic for each element.
  Value call(StringRef name, ValueRange operands) {
    const auto one = [&](ValueRange scalars) {
      return LLVM::CallIntrinsicOp::create(rewriter, loc, rewriter.getF32Type(), rewriter.getStringAttr(name), scalars)
          .getResult(0);
    };
    const auto type = dyn_cast<VectorType>(operands[0].getType());
    if (!type)
      return one(operands);
    SmallVector<ValueRange> elements;
    for (const Value operand : operands)
      elements.push_back(vector::ToElementsOp::create(rewriter, loc, operand).getElements());
    SmallVector<Value> results;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      results.push_back(one(llvm::map_to_vector(elements, [i](ValueRange each) { return each[i]; })));
    return vector::FromElementsOp::create(rewriter, loc, type, results);
  }

  Emit emit;
  PatternRewriter &rewriter;
  const Location loc;
};

/// Lowers one operation by `function`, if it may be fast or if `function` satisfies the bounds of all targets.
template <class OpTy, auto function, bool always = false> struct Approximate : OpRewritePattern<OpTy> {
  explicit Approximate(MLIRContext *context) : OpRewritePattern<OpTy>(context, /*benefit=*/always ? 2 : 3) {}
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    if (!isScalarOrVector(op.getType(), [](Type element) { return element.isF32(); }))
      return rewriter.notifyMatchFailure(op, "not a scalar or vector of f32");
    if (!always && tile::accuracyOf(op) != tile::Accuracy::Fast)
      return rewriter.notifyMatchFailure(op, "must be within the bounds of every machine");
    Instructions instructions(rewriter, op.getLoc());
    if constexpr (std::is_same_v<OpTy, arith::DivFOp>)
      rewriter.replaceOp(op, (instructions.*function)(op.getLhs(), op.getRhs()));
    else
      rewriter.replaceOp(op, (instructions.*function)(op.getOperand()));
    return success();
  }
};
} // namespace

/// Patterns for f32 functions and divisions whose `tile.accuracy` is `fast`. Also for rsqrt in full accuracy, because
/// the instruction with a correction meets the bound. They have priority over those of MathFunctions.h.
static void addApproximatePatterns(RewritePatternSet &patterns) {
  patterns.add<Approximate<math::Exp2Op, &Instructions::exp2>, Approximate<math::ExpOp, &Instructions::exp>,
               Approximate<math::Log2Op, &Instructions::log2>, Approximate<math::LogOp, &Instructions::log>,
               Approximate<math::TanhOp, &Instructions::tanh>, Approximate<math::RsqrtOp, &Instructions::fastRsqrt>,
               Approximate<math::RsqrtOp, &Instructions::rsqrt, /*always=*/true>,
               Approximate<arith::DivFOp, &Instructions::divide>>(patterns.getContext());
}

// --- The pass --------------------------------------------------------------------------------------------------------

#define GEN_PASS_DEF_LOWERMATH
#include "lowering/gpu/Passes.h.inc"

namespace {

/// LLVM 22 drops the select of
///
///     n < 64 ? x << n : 0
///
/// because PTX clamps the shift amount. But PTX uses only 32 bits of it, so a shift by 2³² would be a shift by 0. LLVM
/// does not recognise the select if the amount is masked.
template <class OpTy> struct MaskAmount : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    Emit emit(rewriter, op.getLoc());
    if (!getElementTypeOrSelf(op.getType()).isInteger(64) || matchPattern(op.getRhs(), m_Constant()) ||
        op.getRhs().template getDefiningOp<arith::AndIOp>())
      return rewriter.notifyMatchFailure(op, "not a shift of 64 bits by an amount that is not known");
    const Value lowest = emit.make<arith::AndIOp>(op.getRhs(), emit.integer(op.getType(), 63));
    rewriter.modifyOpInPlace(op, [&] { op.getRhsMutable().assign(lowest); });
    return success();
  }
};

/// min and max by LLVM's operation, one PTX instruction, which may return −0 or +0 for two zeros. A comparison and a
/// select would be wrong: LLVM would know which zero results, drop a later + 0, and then emit the instruction, which
/// may return the other zero.
template <class From, class To> struct KeepExtremum : OpRewritePattern<From> {
  using OpRewritePattern<From>::OpRewritePattern;
  LogicalResult matchAndRewrite(From op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<To>(op, op.getType(), op.getLhs(), op.getRhs());
    return success();
  }
};

struct LowerMath : impl::LowerMathBase<LowerMath> {
  using LowerMathBase::LowerMathBase;
  void getDependentDialects(DialectRegistry &registry) const override {
    LowerMathBase::getDependentDialects(registry);
    registry.insert<LLVM::LLVMDialect, scf::SCFDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    addFunctionPatterns(patterns);
    addApproximatePatterns(patterns);
    patterns.add<MaskAmount<arith::ShLIOp>, MaskAmount<arith::ShRUIOp>, KeepExtremum<arith::MinNumFOp, LLVM::MinNumOp>,
                 KeepExtremum<arith::MaxNumFOp, LLVM::MaxNumOp>>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    removeAccuracies(getOperation());
  }
};
} // namespace

} // namespace kiln::lowering::gpu
