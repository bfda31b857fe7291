// Stages of a bitonic sort within a warp, and gathers and histograms in shared memory.
//
// A stage compares values of one thread, or, by a shuffle, of lanes that differ in one bit. Blocks are descending if
// the bit of their level is set in the position. For register bits that is a constant. If it depends on the thread, its
// numbers are inverted bitwise during that level, and all blocks are ascending.

#include "lowering/gpu/ThreadCode.h"

using namespace mlir;

namespace kiln::lowering::gpu {

namespace {

class Sorter {
public:
  Sorter(ThreadCode &code, simt::SortOp op)
      : code(code), op(op), emit(code.builder, code.loc), layout(simt::layoutOf(op.getSources()[0]).getLayout()),
        axis(static_cast<unsigned>(op.getAxis())), bits(layout.axisBits(axis)),
        level(static_cast<unsigned>(bits.size())) {
    for (const Value source : op.getSources())
      tiles.push_back(code.elementsOf(source));
  }

  void lower() {
    for (int64_t number = op.getStages()[0]; number < op.getStages()[1]; ++number) {
      const auto [stageLevel, bit] = simt::SortOp::stageOf(number);
      invertFor(stageLevel);
      if (bits[bit].part == Hw::reg)
        compareRegisters(bit);
      else
        compareLanes(bits[bit].index);
    }
    invertFor(static_cast<unsigned>(bits.size()));
    for (const auto [result, values] : llvm::zip_equal(op.getResults(), tiles))
      code.set(result, values);
  }

private:
  /// Whether the thread's number has the bit, as i32 with all bits or none.
  Value spreadBit(const simt::AxisBit &bit) {
    const Value moved = code.make<arith::ShLIOp>(code.number(bit.part), code.i32(31 - static_cast<int64_t>(bit.index)));
    return code.make<arith::ShRSIOp>(moved, code.i32(31));
  }
  bool isOfThreads(unsigned at) const { return at < bits.size() && bits[at].part != Hw::reg; }

  /// Inverts numbers of blocks that are descending in level `next`, and restores those of the present level.
  void invertFor(unsigned next) {
    if (next == level || (!isOfThreads(level) && !isOfThreads(next))) {
      level = next;
      return;
    }
    Value mask;
    for (const unsigned each : {level, next})
      if (isOfThreads(each)) {
        const Value spread = spreadBit(bits[each]);
        mask = mask ? code.make<arith::XOrIOp>(mask, spread) : spread;
      }
    for (Values &values : tiles)
      for (Value &value : values) {
        const Type type = value.getType();
        const Value wide = type.isInteger(64) ? code.make<arith::ExtSIOp>(type, mask) : mask;
        value = code.make<arith::XOrIOp>(value, wide);
      }
    level = next;
  }

  bool descends(int64_t stored) const {
    return level < bits.size() && bits[level].part == Hw::reg && (layout.positionOf(stored)[axis] >> level & 1);
  }
  Value isBefore(ArrayRef<Value> a, ArrayRef<Value> b) {
    const Value less = emit.compare(arith::CmpIPredicate::slt, a[0], b[0]);
    if (a.size() == 1)
      return less;
    const Value equal = emit.compare(arith::CmpIPredicate::eq, a[0], b[0]),
                tie = emit.compare(arith::CmpIPredicate::slt, a[1], b[1]);
    return code.make<arith::OrIOp>(less, code.make<arith::AndIOp>(equal, tie));
  }
  Values at(int64_t stored) const {
    return llvm::map_to_vector(tiles, [&](const Values &values) { return values[stored]; });
  }

  void compareRegisters(unsigned bit) {
    for (int64_t stored = 0; stored < layout.numStored(); ++stored) {
      SmallVector<int64_t> position = layout.positionOf(stored);
      if (position[axis] >> bit & 1)
        continue;
      position[axis] += int64_t{1} << bit;
      int64_t small = stored, great = *layout.storedAt(position);
      if (descends(stored))
        std::swap(small, great);
      const Values a = at(small), b = at(great);
      if (a.size() == 1) {
        tiles[0][small] = code.make<arith::MinSIOp>(a[0], b[0]);
        tiles[0][great] = code.make<arith::MaxSIOp>(a[0], b[0]);
        continue;
      }
      const Value before = isBefore(a, b);
      for (auto [values, x, y] : llvm::zip_equal(tiles, a, b)) {
        values[small] = emit.select(before, x, y);
        values[great] = emit.select(before, y, x);
      }
    }
  }

  void compareLanes(unsigned lane) {
    std::vector<Values> others;
    for (const Values &values : tiles) {
      const auto type = VectorType::get({layout.numStored()}, values[0].getType());
      const Value vector = code.exchanged(code.make<vector::FromElementsOp>(type, values), int64_t{1} << lane);
      others.emplace_back(vector::ToElementsOp::create(code.builder, code.loc, vector).getResults());
    }
    const Value bit = code.make<arith::AndIOp>(code.number(Hw::lane), code.i32(int64_t{1} << lane));
    const Value isUpper = emit.compare(arith::CmpIPredicate::ne, bit, code.i32(0)),
                isLower = emit.compare(arith::CmpIPredicate::eq, bit, code.i32(0));
    for (int64_t stored = 0; stored < layout.numStored(); ++stored) {
      const Values mine = at(stored);
      const Values its = llvm::map_to_vector(others, [&](const Values &values) { return values[stored]; });
      const Value takesSmaller = descends(stored) ? isUpper : isLower;
      const Value keeps = emit.compare(arith::CmpIPredicate::eq, isBefore(mine, its), takesSmaller);
      for (auto [values, own, other] : llvm::zip_equal(tiles, mine, its))
        values[stored] = emit.select(keeps, own, other);
    }
  }

  ThreadCode &code;
  simt::SortOp op;
  Emit emit;
  const TileLayout layout;
  const unsigned axis;
  const SmallVector<simt::AxisBit> bits;
  std::vector<Values> tiles; // the thread's elements of each tile
  unsigned level;            // level of the stage, or a bit above all positions
};

} // namespace

void distribute(ThreadCode &code, simt::SortOp op) { Sorter(code, op).lower(); }

/// Whether a thread's register index is inside the tile, and its value is a valid position (not negative).
static Value isPlace(ThreadCode &code, LayoutAttr attribute, int64_t stored, Value place) {
  Value is = code.make<arith::CmpIOp>(arith::CmpIPredicate::sge, place, code.i32(0));
  for (unsigned dim = 0; dim < attribute.getLayout().rank(); ++dim)
    is = code.both(is, code.isWithin(attribute, stored, dim));
  return is;
}

void distribute(ThreadCode &code, simt::LookUpOp op) {
  const LayoutAttr attribute = simt::layoutOf(op.getResult());
  const TileLayout layout = attribute.getLayout();
  const Type element = op.getType().getElementType(),
             stored = element.isInteger(1) ? code.builder.getI8Type() : element;
  const auto vectorType = VectorType::get({1}, stored);
  const Value other = code.make<arith::ConstantOp>(code.builder.getZeroAttr(vectorType));
  const Values places = code.elementsOf(op.getPlaces());
  Values elements(places.size(), code.make<arith::ConstantOp>(cast<TypedAttr>(code.builder.getZeroAttr(element))));
  for (const auto [number, place] : llvm::enumerate(places)) {
    const auto index = static_cast<int64_t>(number);
    if (layout.isDead(index))
      continue;
    const Value address = code.add(code.held(op.getBuffer()), place);
    const Value loaded = code.make<simt::LoadOp>(vectorType, simt::Space::Shared, address, int64_t{0},
                                                 isPlace(code, attribute, index, place), other);
    const Value value = code.make<vector::ExtractOp>(loaded, 0);
    elements[number] = element.isInteger(1) ? code.make<arith::TruncIOp>(element, value) : value;
  }
  code.set(op.getResult(), elements);
}

void distribute(ThreadCode &code, simt::CountOp op) {
  const LayoutAttr attribute = simt::layoutOf(op.getPlaces());
  const TileLayout layout = attribute.getLayout();
  const Value owner = code.isOwner(layout);
  const Values places = code.elementsOf(op.getPlaces());
  for (int64_t stored = 0; stored < layout.numStored(); ++stored) {
    if (layout.isDead(stored))
      continue;
    const Value counts = code.both(owner, isPlace(code, attribute, stored, places[stored]));
    simt::IncrementOp::create(code.builder, code.loc, code.add(code.held(op.getBuffer()), places[stored]), counts);
  }
}

} // namespace kiln::lowering::gpu
