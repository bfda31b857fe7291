// Expands total integer operations, casts, random numbers and narrow-float arithmetic into arith.
//
// All patterns are elementwise and apply to scalars and tiles. Afterwards
//
//   - there is no `tile.cast`, `div`, `rem`, `shl`, `shr` or `random`;
//   - the only arithmetic on bf16 and f16 is conversion to and from f32; none of bool, bf16 and f16 is reduced;
//   - only integers are sorted (SortKeys.cpp), and unsigned numbers are ordered as signed ones;
//   - 8-bit floats are bytes (CarryBits.h).
//
// A narrow-float operation rounds once: its f32 result has more than twice the bits, so double rounding makes no
// difference. Where it would (fma, conversions of f64 and integers), the first step rounds to odd. Operations that the
// target rounds once natively (`native-narrow`) are unchanged.
//
//     %0 = arith.addf %a, %b : tensor<4xbf16>
//     // becomes
//     %1 = arith.extf %a : tensor<4xbf16> to tensor<4xf32>
//     %2 = arith.extf %b : tensor<4xbf16> to tensor<4xf32>
//     %3 = arith.addf %1, %2 : tensor<4xf32>
//     %0 = arith.truncf %3 : tensor<4xf32> to tensor<4xbf16>

#include "lowering/Passes.h"
#include "lowering/tile/CarryBits.h"
#include "lowering/tile/Emit.h"
#include "lowering/tile/SortKeys.h"

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace kiln::lowering {

#define GEN_PASS_DEF_EXPANDOPS
#include "lowering/Passes.h.inc"

/// The value of a scalar constant or a splat, or none.
static std::optional<APInt> constantOf(Value value) {
  APInt integer;
  if (matchPattern(value, m_ConstantInt(&integer)))
    return integer;
  return std::nullopt;
}

static bool isNarrow(Value value) { return tile::isNarrowFloat(getElementTypeOrSelf(value.getType())); }

namespace {

struct ExpandCast : OpRewritePattern<tile::CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tile::CastOp op, PatternRewriter &rewriter) const override {
    Emit emit(rewriter, op.getLoc());
    const Type to = getElementTypeOrSelf(op.getType());
    rewriter.replaceOp(op,
                       tile::isUnsigned(op) ? castUnsigned(emit, op.getSource(), to) : emit.cast(op.getSource(), to));
    return success();
  }
};

/// To f16 by one instruction, from types that f32 does not contain.
struct KeepCastToHalf : OpRewritePattern<tile::CastOp> {
  explicit KeepCastToHalf(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/2) {}
  LogicalResult matchAndRewrite(tile::CastOp op, PatternRewriter &rewriter) const override {
    const Type from = getElementTypeOrSelf(op.getSource().getType());
    if (!getElementTypeOrSelf(op.getType()).isF16() || !(from.isF64() || from.isInteger(32) || from.isInteger(64)))
      return rewriter.notifyMatchFailure(op, "no detour to spare");
    if (from.isF64())
      rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(),
                                                   Emit(rewriter, op.getLoc()).settled(op.getSource()));
    else if (tile::isUnsigned(op))
      rewriter.replaceOpWithNewOp<arith::UIToFPOp>(op, op.getType(), op.getSource());
    else
      rewriter.replaceOpWithNewOp<arith::SIToFPOp>(op, op.getType(), op.getSource());
    return success();
  }
};

/// The divisor of integers: 1 in place of 0, and of −1 of signed numbers. The results for these are selected
/// afterwards.
struct Divisor {
  Value safe, isZero, isMinusOne; // i1; null: never

  Divisor(Emit &emit, Value b, bool isUnsigned) : safe(b) {
    const auto known = constantOf(b);
    if (known && !known->isZero() && (isUnsigned || !known->isAllOnes()))
      return;
    Value special = isZero = emit.compare(arith::CmpIPredicate::eq, b, emit.integer(b.getType(), 0));
    if (!isUnsigned) {
      isMinusOne = emit.compare(arith::CmpIPredicate::eq, b, emit.integer(b.getType(), -1));
      special = emit.make<arith::OrIOp>(isZero, isMinusOne);
    }
    safe = emit.select(special, emit.integer(b.getType(), 1), b);
  }
};

/// x / 0 is 0, and INT_MIN / −1 wraps.
struct ExpandDiv : OpRewritePattern<tile::DivOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tile::DivOp op, PatternRewriter &rewriter) const override {
    Emit emit(rewriter, op.getLoc());
    const Value a = op.getLhs(), zero = emit.integer(a.getType(), 0);
    const Divisor b(emit, op.getRhs(), tile::isUnsigned(op));
    Value quotient = tile::isUnsigned(op) ? emit.make<arith::DivUIOp>(a, b.safe) : emit.make<arith::DivSIOp>(a, b.safe);
    if (b.isMinusOne)
      quotient = emit.select(b.isMinusOne, emit.make<arith::SubIOp>(zero, a), quotient);
    rewriter.replaceOp(op, b.isZero ? emit.select(b.isZero, zero, quotient) : quotient);
    return success();
  }
};

/// x rem 0 is x; x rem −1 is 0, as x rem 1.
struct ExpandRem : OpRewritePattern<tile::RemOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tile::RemOp op, PatternRewriter &rewriter) const override {
    Emit emit(rewriter, op.getLoc());
    const Value a = op.getLhs();
    const Divisor b(emit, op.getRhs(), tile::isUnsigned(op));
    const Value rest =
        tile::isUnsigned(op) ? emit.make<arith::RemUIOp>(a, b.safe) : emit.make<arith::RemSIOp>(a, b.safe);
    rewriter.replaceOp(op, b.isZero ? emit.select(b.isZero, a, rest) : rest);
    return success();
  }
};

struct ExpandShl : OpRewritePattern<tile::ShlOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tile::ShlOp op, PatternRewriter &rewriter) const override {
    Emit emit(rewriter, op.getLoc());
    Value a = op.getLhs(), n = op.getRhs();
    unsigned width = getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth();
    if (auto amount = constantOf(n); amount && amount->ult(width)) {
      rewriter.replaceOpWithNewOp<arith::ShLIOp>(op, a, n);
      return success();
    }
    Value inRange = emit.compare(arith::CmpIPredicate::ult, n, emit.integer(n.getType(), width));
    Value shifted = emit.make<arith::ShLIOp>(a, n);
    rewriter.replaceOp(op, emit.select(inRange, shifted, emit.integer(a.getType(), 0)));
    return success();
  }
};

/// A shift by the width or more gives the sign, as a shift by width − 1; for unsigned numbers it gives 0.
struct ExpandShr : OpRewritePattern<tile::ShrOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tile::ShrOp op, PatternRewriter &rewriter) const override {
    Emit emit(rewriter, op.getLoc());
    unsigned width = getElementTypeOrSelf(op.getType()).getIntOrFloatBitWidth();
    Value n = op.getRhs();
    if (tile::isUnsigned(op)) {
      Value shifted = emit.make<arith::ShRUIOp>(op.getLhs(), n);
      if (auto amount = constantOf(n); !amount || amount->uge(width)) {
        Value inRange = emit.compare(arith::CmpIPredicate::ult, n, emit.integer(n.getType(), width));
        shifted = emit.select(inRange, shifted, emit.integer(n.getType(), 0));
      }
      rewriter.replaceOp(op, shifted);
      return success();
    }
    if (auto amount = constantOf(n); !amount || amount->uge(width))
      n = emit.make<arith::MinUIOp>(n, emit.integer(n.getType(), width - 1));
    rewriter.replaceOpWithNewOp<arith::ShRSIOp>(op, op.getLhs(), n);
    return success();
  }
};

/// Philox-4x32-10 (Salmon et al., SC 2011). Words are in the low halves of i64, so that products are exact.
struct ExpandRandom : OpRewritePattern<tile::RandomOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tile::RandomOp op, PatternRewriter &rewriter) const override {
    Emit emit(rewriter, op.getLoc());
    Type type = op.getIndex().getType();
    auto low = [&](Value x) { return emit.make<arith::AndIOp>(x, emit.integer(x.getType(), 0xFFFFFFFF)); };
    auto high = [&](Value x) { return emit.make<arith::ShRUIOp>(x, emit.integer(x.getType(), 32)); };
    auto both = [&](Value a, Value b) { return emit.make<arith::XOrIOp>(a, b); };
    Value zero = emit.integer(type, 0);
    Value counter[4] = {low(op.getIndex()), high(op.getIndex()), zero, zero};
    Value key[2] = {low(op.getSeed()), high(op.getSeed())};
    for (int round = 0; round < 10; ++round) {
      Value p0 = emit.make<arith::MulIOp>(counter[0], emit.integer(type, 0xD2511F53));
      Value p1 = emit.make<arith::MulIOp>(counter[2], emit.integer(type, 0xCD9E8D57));
      Value k0 = emit.spread(key[0], type), k1 = emit.spread(key[1], type);
      Value next[4] = {both(both(high(p1), counter[1]), k0), low(p1), both(both(high(p0), counter[3]), k1), low(p0)};
      std::copy(next, next + 4, counter);
      key[0] = low(emit.make<arith::AddIOp>(key[0], emit.integer(key[0].getType(), 0x9E3779B9)));
      key[1] = low(emit.make<arith::AddIOp>(key[1], emit.integer(key[1].getType(), 0xBB67AE85)));
    }
    rewriter.replaceOpWithNewOp<arith::TruncIOp>(op, op.getType(), counter[op.getWord()]);
    return success();
  }
};

/// Conversions between f64 and narrow floats through f32, without double rounding.
template <class OpTy> struct ExpandFloatConversion : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    Type from = getElementTypeOrSelf(op.getIn().getType()), to = getElementTypeOrSelf(op.getType());
    if ((from.isF32() || to.isF32()) && !tile::isByteFloat(from) && !tile::isByteFloat(to))
      return rewriter.notifyMatchFailure(op, "one step already");
    rewriter.replaceOp(op, Emit(rewriter, op.getLoc()).cast(op.getIn(), to));
    return success();
  }
};

/// Elementwise arithmetic on bf16 and f16 in f32, except operations that the target rounds once natively.
struct WidenNarrowFloats : RewritePattern {
  WidenNarrowFloats(MLIRContext *context, bool isNative)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context), isNative(isNative) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) || !op->hasTrait<OpTrait::Elementwise>())
      return failure();
    if (isa<arith::ExtFOp, arith::TruncFOp, arith::BitcastOp, arith::SelectOp, math::FmaOp>(op))
      return rewriter.notifyMatchFailure(op, "moves or converts, or has its own pattern");
    if (llvm::none_of(op->getOperands(), isNarrow) && llvm::none_of(op->getResults(), isNarrow))
      return rewriter.notifyMatchFailure(op, "no bf16 or f16");
    const auto isByte = [](Type type) { return tile::isByteFloat(getElementTypeOrSelf(type)); };
    if (isNative && llvm::none_of(op->getOperandTypes(), isByte) &&
        isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp, arith::MaxNumFOp, arith::MinNumFOp,
            arith::CmpFOp, math::AbsFOp>(op))
      return rewriter.notifyMatchFailure(op, "an instruction of the target's");
    Emit emit(rewriter, op->getLoc());
    IRMapping wide;
    for (Value operand : op->getOperands())
      if (isNarrow(operand))
        wide.map(operand, emit.cast(operand, rewriter.getF32Type()));
    Operation *widened = rewriter.clone(*op, wide);
    SmallVector<Value> results;
    for (Value result : widened->getResults()) {
      Type element = getElementTypeOrSelf(result.getType());
      if (!tile::isNarrowFloat(element)) {
        results.push_back(result);
        continue;
      }
      result.setType(typeLike(result.getType(), rewriter.getF32Type()));
      rewriter.setInsertionPointAfter(widened);
      results.push_back(emit.cast(result, element));
    }
    rewriter.replaceOp(op, results);
    return success();
  }

  const bool isNative;
};

/// A narrow fma with one rounding: the product is exact in f64, and the sum is rounded to odd.
struct WidenFma : OpRewritePattern<math::FmaOp> {
  WidenFma(MLIRContext *context, bool isNative) : OpRewritePattern(context), isNative(isNative) {}
  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &rewriter) const override {
    if (!isNarrow(op.getResult()) || (isNative && !tile::isByteFloat(getElementTypeOrSelf(op.getType()))))
      return rewriter.notifyMatchFailure(op, "not narrow, or an instruction of the target's");
    Emit emit(rewriter, op.getLoc());
    Type f64 = rewriter.getF64Type();
    Value product = emit.make<arith::MulFOp>(emit.cast(op.getA(), f64), emit.cast(op.getB(), f64));
    Value sum = emit.addToOdd(product, emit.cast(op.getC(), f64));
    rewriter.replaceOp(op, emit.cast(sum, getElementTypeOrSelf(op.getType())));
    return success();
  }

  const bool isNative;
};

// Reductions, and scans by a kind.
Value sourceOf(tile::ReduceOp op) { return op.getSource(); }
Value sourceOf(tile::ScanOp op) { return op.getSources()[0]; }
std::optional<tile::ReduceKind> kindOf(tile::ReduceOp op) { return op.getKind(); }
std::optional<tile::ReduceKind> kindOf(tile::ScanOp op) { return op.getKind(); }

/// The operation on another source; the result has its element type, unless it is an index.
Value again(PatternRewriter &rewriter, tile::ReduceOp op, Value source) {
  const Type element = getElementTypeOrSelf(source.getType());
  const Type type = op.getKind() == tile::ReduceKind::ArgMax ? op.getType() : typeLike(op.getType(), element);
  return tile::ReduceOp::create(rewriter, op.getLoc(), type, op.getKind(), source, op.getAxis());
}
Value again(PatternRewriter &rewriter, tile::ScanOp op, Value source) {
  const auto axis = static_cast<int64_t>(op.getAxis());
  return tile::ScanOp::create(rewriter, op.getLoc(), *op.getKind(), source, axis, op.getReverse()).getResult(0);
}

/// bf16 and f16 are combined in f32, and each result is rounded once; bool is combined as 0 and 1.
template <class OpTy> struct WidenFold : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    const Type element = getElementTypeOrSelf(sourceOf(op).getType());
    const auto kind = kindOf(op);
    if (!kind || (!tile::isNarrowFloat(element) && !element.isInteger(1)))
      return rewriter.notifyMatchFailure(op, "combined as it is");
    Emit emit(rewriter, op.getLoc());
    const Type wide = tile::isNarrowFloat(element) ? Type(rewriter.getF32Type()) : Type(rewriter.getI8Type());
    Value result = again(rewriter, op, emit.cast(sourceOf(op), wide));
    if (element.isInteger(1) && *kind == tile::ReduceKind::Sum) // wraps, as other integer sums
      result = emit.make<arith::TruncIOp>(typeLike(result.getType(), element), result);
    else if (*kind != tile::ReduceKind::ArgMax)
      result = emit.cast(result, element);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Unsigned numbers are ordered as signed ones with the highest bit inverted.
Value withSignBitInverted(Emit &emit, Value value) {
  const unsigned width = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  return emit.make<arith::XOrIOp>(value, emit.integer(value.getType(), APInt::getSignedMinValue(width).getSExtValue()));
}
bool isOrdered(tile::ReduceKind kind) {
  return kind == tile::ReduceKind::Max || kind == tile::ReduceKind::Min || kind == tile::ReduceKind::ArgMax;
}

/// Unsigned numbers reduced or scanned by the order of signed ones.
template <class OpTy> struct ExpandUnsignedFold : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;
  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    const auto kind = kindOf(op);
    if (!tile::isUnsigned(op) || !kind || !isOrdered(*kind))
      return rewriter.notifyMatchFailure(op, "signed numbers, or a kind for which it does not matter");
    Emit emit(rewriter, op.getLoc());
    const Value result = again(rewriter, op, withSignBitInverted(emit, sourceOf(op)));
    rewriter.replaceOp(op, *kind == tile::ReduceKind::ArgMax ? result : withSignBitInverted(emit, result));
    return success();
  }
};

/// 8-bit floats are multiplied as bf16, which contains all of them, unless the target multiplies them natively and the
/// precision permits it.
struct WidenDot : OpRewritePattern<tile::DotOp> {
  WidenDot(MLIRContext *context, bool isNative, bool isCoarse)
      : OpRewritePattern(context), isNative(isNative), isCoarse(isCoarse) {}
  LogicalResult matchAndRewrite(tile::DotOp op, PatternRewriter &rewriter) const override {
    const Type a = getElementTypeOrSelf(op.getA().getType()), b = getElementTypeOrSelf(op.getB().getType());
    if (!tile::isByteFloat(a))
      return rewriter.notifyMatchFailure(op, "multiplied as it is");
    if (isNative && (!isCoarse || op.getPrecision() != tile::Precision::IEEE)) {
      rewriter.modifyOpInPlace(op, [&] {
        op->setAttr(tile::factorsName, rewriter.getTypeArrayAttr({a, b}));
        if (isCoarse)
          op->setAttr("tile.coarse", rewriter.getUnitAttr());
      });
      return success();
    }
    Emit emit(rewriter, op.getLoc());
    const Type wide = rewriter.getBF16Type();
    rewriter.replaceOpWithNewOp<tile::DotOp>(op, emit.cast(op.getA(), wide), emit.cast(op.getB(), wide), op.getAcc(),
                                             op.getPrecision());
    return success();
  }

  const bool isNative, isCoarse;
};

struct ExpandOps : impl::ExpandOpsBase<ExpandOps> {
  using ExpandOpsBase::ExpandOpsBase;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandCast, ExpandDiv, ExpandRem, ExpandShl, ExpandShr, ExpandRandom,
                 ExpandFloatConversion<arith::ExtFOp>, WidenFold<tile::ReduceOp>, WidenFold<tile::ScanOp>,
                 ExpandUnsignedFold<tile::ReduceOp>, ExpandUnsignedFold<tile::ScanOp>>(&getContext());
    patterns.add<WidenDot>(&getContext(), byteProducts, coarse);
    addSortPatterns(patterns);
    patterns.add<WidenNarrowFloats, WidenFma>(&getContext(), nativeNarrow);
    if (nativeNarrow)
      patterns.add<KeepCastToHalf>(&getContext());
    patterns.add<ExpandFloatConversion<arith::TruncFOp>>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    carryAsBits(getOperation(), [](Type type) { return carriedAsBits(type, tile::isByteFloat); });
  }
};

} // namespace

} // namespace kiln::lowering
