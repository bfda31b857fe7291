// Expands transcendental functions: by the GPU's approximate instructions if allowed, otherwise by the polynomials of
// MathFunctions.h, as on every target. Also works around LLVM's handling of shifts, minima and maxima.

#include "lowering/gpu/ApproximateMath.h"
#include "lowering/gpu/Passes.h"
#include "lowering/math/FunctionPatterns.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace kiln::lowering::gpu {

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
