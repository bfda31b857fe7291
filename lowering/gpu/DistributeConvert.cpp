// A conversion of layouts within each warp, as dialect/simt/layout/Shuffle.h plans it.
//
// Registers are packed into 32-bit words. Words are selected by bits of the lane and the warp, exchanged between lanes,
// and selected again by the receiving lane. f64 has two words, so everything is done twice.

#include "lowering/gpu/ThreadCode.h"

#include "dialect/simt/layout/Shuffle.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::F2Map;
using simt::ShufflePlan;
using simt::Vec;

namespace {

class Mover {
public:
  Mover(ThreadCode &code, const TileLayout &from, const TileLayout &to, unsigned bits)
      : code(code), from(from), to(to), bits(bits), plan(*simt::planShuffle(from, to, bits)),
        i32(code.builder.getI32Type()) {}

  /// Converts a thread's elements of `bits` bits from the layout `from` to `to`.
  Value move(Value held) {
    Values words = split(held), received;
    const size_t planes = bits == 64 ? 2 : 1, sourceWords = size_t{1} << plan.source.word.size();
    for (size_t begin = 0; begin < words.size(); begin += planes * sourceWords) {
      SmallVector<Values, 2> parts;
      for (size_t plane = 0; plane < planes; ++plane) {
        Values part;
        for (size_t word = 0; word < sourceWords; ++word)
          part.push_back(words[begin + word * planes + plane]);
        parts.push_back(exchange(part));
      }
      for (size_t word = 0; word < plan.rounds(); ++word)
        for (const Values &part : parts)
          received.push_back(part[word]);
    }
    return join(received, cast<VectorType>(held.getType()).getElementType());
  }

private:
  /// The register indices of the elements of all words, repeat by repeat.
  static Indices elementsByWord(const ShufflePlan::Registers &registers, const TileLayout &layout) {
    Indices indices;
    for (int64_t repeat = 0; repeat < layout.shape().repeats(); ++repeat)
      for (unsigned word = 0; word < 1u << registers.word.size(); ++word)
        for (unsigned element = 0; element < 1u << registers.element.size(); ++element)
          indices.push_back((repeat << layout.regBits()) + registers.of(word, element));
    return indices;
  }

  unsigned wordBits() const { return std::min(32u, bits << plan.target.element.size()); }
  VectorType vectorOf(int64_t count, Type element) { return VectorType::get({count}, element); }

  Values split(Value held) {
    Value packed = code.pick(held, elementsByWord(plan.source, from));
    const auto type = cast<VectorType>(packed.getType());
    const Type word = code.builder.getIntegerType(wordBits());
    const int64_t count = type.getNumElements() * bits / wordBits();
    packed = code.make<vector::BitCastOp>(vectorOf(count, word), packed);
    if (word != i32)
      packed = code.make<arith::ExtUIOp>(vectorOf(count, i32), packed);
    return Values(vector::ToElementsOp::create(code.builder, code.loc, packed).getResults());
  }

  Value join(ArrayRef<Value> words, Type element) {
    const auto count = static_cast<int64_t>(words.size());
    const Type word = code.builder.getIntegerType(wordBits());
    Value packed = code.make<vector::FromElementsOp>(vectorOf(count, i32), words);
    if (word != i32)
      packed = code.make<arith::TruncIOp>(vectorOf(count, word), packed);
    packed = code.make<vector::BitCastOp>(vectorOf(to.numStored(), element), packed);
    Indices places(static_cast<size_t>(to.numStored()));
    for (const auto [place, stored] : llvm::enumerate(elementsByWord(plan.target, to)))
      places[static_cast<size_t>(stored)] = static_cast<int64_t>(place);
    return code.pick(packed, places);
  }

  /// The shuffle rounds for the words of one repeat.
  Values exchange(Values words) {
    words = selected(std::move(words), plan.givenWord, plan.warpWord);
    Values received;
    for (unsigned round = 0; round < plan.rounds(); ++round) {
      const auto mask = static_cast<int64_t>(plan.roundLane(round));
      const Value sent = words[plan.roundWord(round) ^ plan.givenWord(static_cast<Vec>(mask))];
      if (plan.isLocal(round))
        received.push_back(sent);
      else if (plan.fromLane == F2Map::identity(simt::laneBits))
        received.push_back(code.make<simt::ShuffleOp>(i32, sent, code.builder.getI32IntegerAttr(mask)));
      else
        received.push_back(
            code.make<simt::ShuffleFromOp>(i32, sent, code.make<arith::XOrIOp>(sender(), code.i32(mask))));
    }
    return selected(std::move(received), plan.intoWord, {});
  }

  /// Word w of the result is word w ⊕ byLane(lane) ⊕ byWarp(warp).
  Values selected(Values words, const F2Map &byLane, const F2Map &byWarp) {
    llvm::MapVector<Vec, Value> conditions; // conditions, by the word-number bits that they flip
    for (const auto &[part, map] : {std::pair(Hw::lane, &byLane), std::pair(Hw::warp, &byWarp)})
      for (const auto [index, difference] : llvm::enumerate(map->columns()))
        if (difference) {
          Value &condition = conditions[difference];
          const Value bit = isSet(part, static_cast<int64_t>(index));
          condition = condition ? code.make<arith::XOrIOp>(condition, bit) : bit;
        }
    for (const auto &[difference, condition] : conditions) {
      Values next;
      for (size_t word = 0; word < words.size(); ++word)
        next.push_back(code.make<arith::SelectOp>(condition, words[word ^ difference], words[word]));
      words = std::move(next);
    }
    return words;
  }

  Value isSet(Hw part, int64_t bit) {
    const Value masked = code.make<arith::AndIOp>(code.number(part), code.i32(int64_t{1} << bit));
    return code.make<arith::CmpIOp>(arith::CmpIPredicate::ne, masked, code.i32(0));
  }

  /// The map U applied to the thread's lane.
  Value sender() {
    llvm::MapVector<int64_t, int64_t> masks; // masks of bits, by shift distance
    for (const auto [index, image] : llvm::enumerate(plan.fromLane.columns()))
      if (image)
        masks[static_cast<int64_t>(llvm::countr_zero(image)) - static_cast<int64_t>(index)] |= int64_t{1} << index;
    Value lane = code.i32(0);
    for (const auto &[up, mask] : masks) {
      Value bits = code.make<arith::AndIOp>(code.number(Hw::lane), code.i32(mask));
      bits = up > 0   ? code.make<arith::ShLIOp>(bits, code.i32(up))
             : up < 0 ? code.make<arith::ShRUIOp>(bits, code.i32(-up))
                      : bits;
      lane = code.make<arith::OrIOp>(lane, bits);
    }
    return lane;
  }

  ThreadCode &code;
  const TileLayout &from, &to;
  const unsigned bits;
  const ShufflePlan plan;
  const Type i32;
};

} // namespace

void distribute(ThreadCode &code, simt::ConvertOp op) {
  const TileLayout from = simt::layoutOf(op.getSource()).getLayout(), to = simt::layoutOf(op.getResult()).getLayout();
  Value held = code.held(op.getSource());
  if (isRenaming(from, to)) {
    Indices indices;
    for (int64_t stored = 0; stored < to.numStored(); ++stored)
      indices.push_back(*from.storedAt(to.positionOf(stored)));
    return code.set(op.getResult(), code.pick(held, indices));
  }
  const auto type = cast<VectorType>(held.getType());
  const bool isBool = type.getElementType().isInteger(1);
  if (isBool)
    held = code.make<arith::ExtUIOp>(typeLike(type, code.builder.getI8Type()), held);
  held = Mover(code, from, to, isBool ? 8 : type.getElementTypeBitWidth()).move(held);
  if (isBool)
    held = code.make<arith::TruncIOp>(typeLike(held.getType(), code.builder.getI1Type()), held);
  code.set(op.getResult(), held);
}

} // namespace kiln::lowering::gpu
