// Expands transcendental functions, minima, maxima and bf16 conversions into arithmetic.
//
// In: scalars and vectors of one dimension. Functions of f32 and f64 become the polynomials of MathFunctions.h. bf16 →
// f32 is a shift. f32 → bf16 is integer arithmetic that rounds to nearest even; LLVM would call a library for each
// element. If the CPU has an instruction for it, vectors use it. The instruction flushes denormals, so their exponent
// is changed before it and restored after it.
//
//     %0 = arith.truncf %x : f32 to bf16
//     // becomes
//     %w = arith.bitcast %x : f32 to i32
//     %r = (%w + 0x7FFF + (%w >> 16 & 1)) >> 16, or the upper half with the quiet bit where %x is NaN
//     %0 = arith.trunci %r : i32 to i16
//
// bf16 is then represented as i16 in registers, memory and parameters. Otherwise LLVM would widen a bf16 that crosses a
// branch or a mask to f32, and round it again by a call.

#include "lowering/Passes.h"
#include "lowering/math/MathFunctions.h"
#include "lowering/tile/CarryBits.h"
#include "lowering/tile/Emit.h"

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_LOWERMATH
#include "lowering/cpu/Passes.h.inc"

namespace {

/// Whether AVX-512's vscalef can be used for `type`: vectors that fill a register.
bool fillsRegister(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getNumElements() * vector.getElementTypeBitWidth() == 512;
}

/// vscalef: x · 2ⁿ; 0 in lanes where `keep` is false, if it is given.
Value scaleByInstruction(OpBuilder &builder, Location loc, Value x, Value n, Value keep) {
  auto type = cast<VectorType>(x.getType());
  const bool wide = type.getElementType().isF64();
  Type lane = builder.getIntegerType(type.getNumElements());
  Value lanes = keep ? LLVM::BitcastOp::create(builder, loc, lane, keep).getResult()
                     : arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(lane, -1)).getResult();
  Value rounding = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(), 4); // rounding by the control register
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  StringRef name = wide ? "llvm.x86.avx512.mask.scalef.pd.512" : "llvm.x86.avx512.mask.scalef.ps.512";
  auto call = LLVM::CallIntrinsicOp::create(builder, loc, type, builder.getStringAttr(name),
                                            ValueRange{x, n, zero, lanes, rounding});
  return call.getResult(0);
}

/// The larger or smaller of two numbers; of a number and a NaN, the number. LLVM's expansion also orders zeros and
/// takes twice as long.
///
///     %0 = arith.maxnumf %a, %b : f32
///     // becomes
///     %m = %a > %b ? %a : %b      // x86's max instruction: %b where %a is NaN
///     %0 = %b == %b ? %m : %a
template <class OpTy, arith::CmpFPredicate first> struct LowerExtremum : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    if (!isScalarOrVector(op.getType(), [](Type element) { return element.isF32() || element.isF64(); }))
      return rewriter.notifyMatchFailure(op, "not a scalar or vector of f32 or f64");
    Emit emit(rewriter, op.getLoc());
    Value a = op.getLhs(), b = op.getRhs();
    Value extremum = emit.select(emit.compare(first, a, b), a, b);
    rewriter.replaceOp(op, emit.select(emit.compare(arith::CmpFPredicate::ORD, b, b), extremum, a));
    return success();
  }
};

/// Converts an integer to a narrow float with one rounding. Canonicalisation folds two conversions into such a one.
template <class OpTy> struct LowerIntegerToNarrow : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    if (!isScalarOrVector(op.getType(), tile::isNarrowFloat))
      return rewriter.notifyMatchFailure(op, "not to a narrow float");
    Emit emit(rewriter, op.getLoc());
    const bool isUnsigned = std::is_same_v<OpTy, arith::UIToFPOp>;
    const Type to = getElementTypeOrSelf(op.getType());
    rewriter.replaceOp(op, isUnsigned ? castUnsigned(emit, op.getIn(), to) : emit.cast(op.getIn(), to));
    return success();
  }
};

/// f32 → bf16 by vcvtneps2bf16, which flushes denormals.
Value roundFlushing(OpBuilder &builder, Location loc, Value x) {
  auto rounded = LLVM::CallIntrinsicOp::create(builder, loc, typeLike(x.getType(), builder.getBF16Type()),
                                               builder.getStringAttr("llvm.x86.avx512bf16.cvtneps2bf16.512"), x);
  return rounded.getResult(0);
}

/// As above, with denormals. Rounding acts on the upper half of a word independently of the exponent. So a denormal is
/// given the exponent of 2; its digits round correctly, or carry into the exponent.
Value roundByInstruction(OpBuilder &builder, Location loc, Value x) {
  Emit emit(builder, loc);
  Value word = emit.bits(x, builder.getI32Type());
  Type words = word.getType(), halves = typeLike(words, builder.getI16Type());
  Value exponent = emit.make<arith::AndIOp>(word, emit.integer(words, 0x7F800000));
  Value small = emit.compare(arith::CmpIPredicate::eq, exponent, emit.integer(words, 0));
  word = emit.select(small, emit.make<arith::OrIOp>(word, emit.integer(words, 0x40000000)), word);
  Value rounded = roundFlushing(builder, loc, emit.bits(word, builder.getF32Type()));
  Value half = emit.bits(rounded, builder.getI16Type());
  return emit.select(small, emit.make<arith::SubIOp>(half, emit.integer(halves, 0x4000)), half);
}

struct LowerBf16Truncation : OpRewritePattern<arith::TruncFOp> {
  LowerBf16Truncation(MLIRContext *context, bool hasInstruction)
      : OpRewritePattern(context), hasInstruction(hasInstruction) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Type from = op.getIn().getType();
    if (!isScalarOrVector(op.getType(), [](Type element) { return element.isBF16(); }) ||
        !getElementTypeOrSelf(from).isF32())
      return rewriter.notifyMatchFailure(op, "not f32 to bf16");
    Emit emit(rewriter, op.getLoc());
    if (hasInstruction && fillsRegister(from)) {
      auto round = op->hasAttr("cpu.flushes") ? roundFlushing : roundByInstruction;
      rewriter.replaceOp(op, emit.bits(round(rewriter, op.getLoc(), op.getIn()), rewriter.getBF16Type()));
      return success();
    }
    Value word = emit.bits(op.getIn(), rewriter.getI32Type());
    Type type = word.getType();
    Value upper = emit.make<arith::ShRUIOp>(word, emit.integer(type, 16));
    Value odd = emit.make<arith::AndIOp>(upper, emit.integer(type, 1));
    Value bias = emit.make<arith::AddIOp>(odd, emit.integer(type, 0x7FFF));
    Value rounded = emit.make<arith::ShRUIOp>(emit.make<arith::AddIOp>(word, bias), emit.integer(type, 16));
    Value isNaN = emit.compare(arith::CmpFPredicate::UNO, op.getIn(), op.getIn());
    Value quiet = emit.make<arith::OrIOp>(upper, emit.integer(type, 0x40));
    Value half = emit.select(isNaN, quiet, rounded);
    half = emit.make<arith::TruncIOp>(typeLike(type, rewriter.getI16Type()), half);
    rewriter.replaceOp(op, emit.bits(half, rewriter.getBF16Type()));
    return success();
  }

private:
  const bool hasInstruction; // vcvtneps2bf16
};

struct LowerBf16Extension : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!isScalarOrVector(op.getIn().getType(), [](Type element) { return element.isBF16(); }))
      return rewriter.notifyMatchFailure(op, "not from bf16");
    Emit emit(rewriter, op.getLoc());
    Value half = emit.bits(op.getIn(), rewriter.getI16Type());
    Value word = emit.make<arith::ExtUIOp>(typeLike(half.getType(), rewriter.getI32Type()), half);
    Value shifted = emit.make<arith::ShLIOp>(word, emit.integer(word.getType(), 16));
    rewriter.replaceOp(op, emit.cast(emit.bits(shifted, rewriter.getF32Type()), getElementTypeOrSelf(op.getType())));
    return success();
  }
};

/// Converts every bf16 to i16. After the patterns, bf16 is only moved, and converted by bitcasts.
void carryBf16AsWords(func::FuncOp func) {
  carryAsBits(func, [](Type type) {
    const auto isBf16 = [](Type element) { return element.isBF16(); };
    return isa<amx::TileType>(type) ? type : carriedAsBits(type, isBf16); // not for tiles
  });
  func.walk([](x86vector::DotBF16Op op) { // it takes bf16
    OpBuilder builder(op);
    for (OpOperand *operand : {&op.getAMutable(), &op.getBMutable()}) {
      auto pairs = cast<VectorType>(operand->get().getType()).clone(builder.getBF16Type());
      operand->set(vector::BitCastOp::create(builder, op.getLoc(), pairs, operand->get()));
    }
  });
}

struct LowerMath : impl::LowerMathBase<LowerMath> {
  using LowerMathBase::LowerMathBase;
  void getDependentDialects(DialectRegistry &registry) const override {
    LowerMathBase::getDependentDialects(registry);
    registry.insert<scf::SCFDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    RewritePatternSet integers(&getContext()); // first, because they leave conversions from f32
    integers.add<LowerIntegerToNarrow<arith::SIToFPOp>, LowerIntegerToNarrow<arith::UIToFPOp>>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(integers));
    RewritePatternSet patterns(&getContext());
    addFunctionPatterns(patterns, scaleInstruction ? scaleByInstruction : nullptr, fillsRegister);
    patterns.add<LowerExtremum<arith::MaxNumFOp, arith::CmpFPredicate::OGT>,
                 LowerExtremum<arith::MinNumFOp, arith::CmpFPredicate::OLT>, LowerBf16Extension>(&getContext());
    patterns.add<LowerBf16Truncation>(&getContext(), roundInstruction);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    carryBf16AsWords(getOperation());
    removeAccuracies(getOperation());
  }
};

} // namespace

} // namespace kiln::lowering::cpu
