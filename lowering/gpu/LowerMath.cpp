// Spells transcendental functions in arithmetic: by the GPU's own instructions where these are allowed, else the
// polynomials of MathFunctions.h, as on every machine. And what LLVM would take for something else.

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
/// because PTX clamps a shift's amount, but it clamps 32 bits of it: shifting by 2³² would shift by 0. It does not
/// recognise the select beside an amount that is masked.
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

/// The smaller or larger of two as LLVM's own operation, one instruction of PTX, which may choose between −0 and +0.
/// Spelt as a comparison and a select it would not be the same: LLVM would know which zero that gives, drop a later
/// + 0, and then make the instruction of it, which gives the other one.
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
    takeAccuracies(getOperation());
  }
};
} // namespace

} // namespace kiln::lowering::gpu
