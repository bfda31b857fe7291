// Converts sorts of any elements to sorts of integers of the same order: their *keys*, of 32 or 64 bits.
//
// A float's key has its bits; for negative numbers all bits except the sign are inverted. NaN has the greatest key; a
// descending order inverts all other keys. If positions are requested, they are in the key's low bits, so that equal
// elements keep their order. These are the unused bits of an i32, or the low half of an i64. With positions, −0 equals
// +0, and the lowest bit distinguishes them. If keys fill 64 bits, the positions are a second operand.

#include "lowering/tile/SortKeys.h"

#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"
#include "lowering/tile/Emit.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::lowering {

namespace {

/// The keys of one sort, and the conversion of its results back to elements.
class SortKeys {
public:
  SortKeys(tile::SortOp op, PatternRewriter &rewriter)
      : op(op), builder(rewriter), emit(rewriter, op.getLoc()), element(op.getSource().getType().getElementType()),
        isReal(isa<FloatType>(element)), hasPositions(!op.getPositions().use_empty()) {
    const unsigned width = element.getIntOrFloatBitWidth();
    bits = width > 32 ? 64 : 32;
    if (bits == 32) // the low bits of a narrow float in f32 are 0
      free = isReal ? APFloat::semanticsPrecision(APFloat::IEEEsingle()) -
                          APFloat::semanticsPrecision(cast<FloatType>(element).getFloatSemantics())
                    : 32 - std::max(8u, width);
  }

  SmallVector<Value, 2> sorted();

private:
  Type integer(unsigned width) { return builder.getIntegerType(width); }
  Value number(Value like, int64_t value) { return emit.integer(like.getType(), value); }
  Value shifted(Value value, int64_t by) { return emit.make<arith::ShLIOp>(value, number(value, by)); }
  /// Inverts the order of negative numbers: the one with the greater bits comes first.
  Value ordered(Value numbers) {
    const Value sign = emit.make<arith::ShRSIOp>(numbers, number(numbers, bits - 1));
    const int64_t allButSign = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
    return emit.make<arith::XOrIOp>(numbers, emit.make<arith::AndIOp>(sign, number(numbers, allButSign)));
  }
  /// Unsigned numbers as signed ones of the same order, and back: inverts the top bit.
  Value signFlipped(Value numbers) {
    const auto top = static_cast<int64_t>(uint64_t{1} << (element.getIntOrFloatBitWidth() - 1));
    return tile::isUnsigned(op) ? emit.make<arith::XOrIOp>(numbers, number(numbers, top)) : numbers;
  }
  Value inOrder(Value keys) { return op.getDescending() ? emit.make<arith::XOrIOp>(keys, number(keys, -1)) : keys; }

  Value keys();
  Value elementsOf(Value keys, Value wasMinusZero);
  Value ties();
  SmallVector<Value, 2> sort(Value keys, Value ties);

  tile::SortOp op;
  PatternRewriter &builder;
  Emit emit;
  const Type element;
  const bool isReal, hasPositions;
  unsigned bits = 32, free = 0;
  Value isMinusZero; // of the elements, i1
};

Value SortKeys::keys() {
  const Value source = op.getSource();
  if (!isReal) {
    const Value wide = emit.cast(signFlipped(source), integer(bits));
    return inOrder(free ? shifted(wide, free) : wide);
  }
  const Value real = tile::isNarrowFloat(element) ? emit.cast(source, builder.getF32Type()) : source;
  Value numbers = emit.bits(real, integer(bits));
  if (hasPositions) {
    const Value minusZero = number(numbers, static_cast<int64_t>(uint64_t{1} << (bits - 1)));
    isMinusZero = emit.compare(arith::CmpIPredicate::eq, numbers, minusZero);
    numbers = emit.select(isMinusZero, number(numbers, 0), numbers);
  }
  const Value key = inOrder(ordered(numbers));
  const Value isNaN = emit.compare(arith::CmpFPredicate::UNO, real, real);
  return emit.select(isNaN, number(key, static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1)), key);
}

/// `wasMinusZero`, of the keys' type, is 1 for elements that were −0; it may be null.
Value SortKeys::elementsOf(Value keys, Value wasMinusZero) {
  Value numbers = inOrder(keys);
  if (!isReal)
    return signFlipped(emit.cast(free ? emit.make<arith::ShRSIOp>(numbers, number(numbers, free)) : numbers, element));
  numbers = ordered(numbers);
  if (free) // the low bits were inverted, too
    numbers = emit.make<arith::AndIOp>(numbers, number(numbers, -(int64_t{1} << free)));
  if (wasMinusZero)
    numbers = emit.make<arith::XOrIOp>(numbers, shifted(wasMinusZero, bits - 1));
  const Value real = emit.bits(numbers, bits == 64 ? Type(builder.getF64Type()) : builder.getF32Type());
  if (isa<Float8E5M2Type>(element)) { // a cast would saturate infinities
    const Value half = emit.bits(emit.cast(real, builder.getF16Type()), integer(16));
    const Value high = emit.make<arith::ShRUIOp>(half, number(half, 8));
    return emit.bits(emit.make<arith::TruncIOp>(typeLike(high.getType(), integer(8)), high), element);
  }
  return tile::isNarrowFloat(element) ? emit.cast(real, element) : real;
}

/// i32 numbers that order equal elements: positions, followed by a bit for −0.
Value SortKeys::ties() {
  const Location loc = op.getLoc();
  const Type i32 = builder.getI32Type();
  const ArrayRef<int64_t> shape = op.getSource().getType().getShape();
  SmallVector<int64_t> along(shape.size(), 1);
  along[op.getAxis()] = op.getExtent();
  const Value line = tile::IotaOp::create(builder, loc, RankedTensorType::get({op.getExtent()}, i32));
  const Value thin = tile::ReshapeOp::create(builder, loc, RankedTensorType::get(along, i32), line);
  const Value positions = tile::BroadcastOp::create(builder, loc, RankedTensorType::get(shape, i32), thin);
  if (!isReal)
    return positions;
  const Value flags = emit.make<arith::ExtUIOp>(positions.getType(), isMinusZero);
  return emit.make<arith::OrIOp>(shifted(positions, 1), flags);
}

SmallVector<Value, 2> SortKeys::sort(Value keys, Value ties) {
  const ArrayRef<int64_t> shape = op.getResult().getType().getShape();
  auto sort = tile::SortOp::create(builder, op.getLoc(), RankedTensorType::get(shape, getElementTypeOrSelf(keys)),
                                   RankedTensorType::get(shape, builder.getI32Type()), keys, ties, op.getAxis(),
                                   /*descending=*/false);
  return {sort.getResult(), sort.getPositions()};
}

SmallVector<Value, 2> SortKeys::sorted() {
  Value key = keys();
  if (!hasPositions)
    return {elementsOf(sort(key, {})[0], {}), Value()};
  Value tie = ties();
  const unsigned tieBits = llvm::Log2_64_Ceil(op.getExtent()) + isReal;
  if (bits == 64) {
    const SmallVector<Value, 2> both = sort(key, tie);
    key = both[0], tie = both[1];
  } else if (tieBits <= free) {
    const int64_t low = (int64_t{1} << free) - 1;
    key = sort(emit.make<arith::OrIOp>(emit.make<arith::AndIOp>(key, number(key, ~low)), tie), {})[0];
    tie = emit.make<arith::AndIOp>(key, number(key, low));
    key = emit.make<arith::AndIOp>(key, number(key, ~low));
  } else {
    const Type wide = typeLike(key.getType(), integer(64));
    const Value high = shifted(emit.make<arith::ExtSIOp>(wide, key), 32);
    const Value both = sort(emit.make<arith::OrIOp>(high, emit.make<arith::ExtUIOp>(wide, tie)), {})[0];
    const Type narrow = typeLike(both.getType(), integer(32));
    key = emit.make<arith::TruncIOp>(narrow, emit.make<arith::ShRSIOp>(both, number(both, 32)));
    tie = emit.make<arith::TruncIOp>(narrow, both);
  }
  if (!isReal)
    return {elementsOf(key, {}), tie};
  const Value flag = emit.make<arith::AndIOp>(tie, number(tie, 1));
  const Value flags = bits == 64 ? emit.make<arith::ExtUIOp>(key.getType(), flag) : flag;
  return {elementsOf(key, flags), emit.make<arith::ShRUIOp>(tie, number(tie, 1))};
}

struct ExpandSort : OpRewritePattern<tile::SortOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tile::SortOp op, PatternRewriter &rewriter) const override {
    if (op.isOfKeys())
      return rewriter.notifyMatchFailure(op, "of keys already");
    const SmallVector<Value, 2> both = SortKeys(op, rewriter).sorted();
    rewriter.replaceAllUsesWith(op.getResult(), both[0]);
    if (both[1])
      rewriter.replaceAllUsesWith(op.getPositions(), both[1]);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void addSortPatterns(RewritePatternSet &patterns) { patterns.add<ExpandSort>(patterns.getContext()); }

} // namespace kiln::lowering
