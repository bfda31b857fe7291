// Lowers a scan by the bits of the positions along its axis, from the lowest to the highest (ScanPlan in
// dialect/simt/layout/TileLayout.h). Register bits are scanned sequentially by a thread. Lane bits are scanned by
// shuffles of block totals. Warp bits are scanned through shared memory: each warp writes the totals of its parts, and
// reads those of others after a barrier.
//
// Values are in vectors with one element for each line along the axis. Each block is scanned first. The total of all
// elements before a block, its *offset*, is computed level by level, and combined with the elements at the end. For a
// function the first block has no offset; for a kind it is the neutral element.

#include "lowering/gpu/ThreadCode.h"

#include "dialect/simt/layout/TileLayout.h"
#include "lowering/tile/Combiner.h"

using namespace mlir;

namespace kiln::lowering::gpu {

namespace {

/// A state (Combiner.h) in vectors of equal length, with an element for each line.
using State = Combiner::State;

/// The total of all preceding elements. Empty: there are none in any thread.
struct Offset {
  State state;
  Value has; // i1: whether there are any; null: always
  bool isNone() const { return state.empty(); }
};

/// Common part of `simt.scan` and `simt.carry`.
template <class OpTy> class Scanner {
public:
  Scanner(ThreadCode &code, OpTy op)
      : code(code), op(op), combiner(Combiner::of(op)), emit(code.builder, code.loc),
        attribute(simt::layoutOf(op.getSources()[0])), layout(attribute.getLayout()),
        axis(static_cast<unsigned>(op.getAxis())), plan(*simt::planScan(layout, axis)) {
    for (const Value source : op.getSources())
      bytes.push_back(std::max(1u, getElementTypeOrSelf(source.getType()).getIntOrFloatBitWidth() / 8));
    findLines();
  }

protected:
  void findLines();
  void read();
  void write(ArrayRef<Offset> offsets, unsigned blockBits);

  State combine(const State &earlier, const State &later) {
    return combiner.combine(emit, earlier, later, [&](Value scalar) { return code.held(scalar); });
  }
  State choose(Value condition, const State &a, const State &b) {
    State state;
    for (const auto [x, y] : llvm::zip_equal(a, b))
      state.push_back(emit.select(condition, x, y));
    return state;
  }
  State neutral() {
    State state;
    for (const auto [value, like] : llvm::zip_equal(combiner.neutral(), elements[0]))
      state.push_back(
          code.make<arith::ConstantOp>(DenseElementsAttr::get(cast<ShapedType>(like.getType()), Attribute(value))));
    return state;
  }
  Offset nothing() { return combiner.hasNeutral() ? Offset{neutral(), {}} : Offset{}; }
  State after(const Offset &offset, const State &state);
  Offset joined(const Offset &outer, const Offset &inner);
  Offset choose(Value condition, const Offset &a, const Offset &b);

  Value isNot(Value condition) { return code.make<arith::XOrIOp>(condition, code.make<arith::ConstantIntOp>(1, 1)); }
  Value bitOf(Hw part, unsigned index) {
    return code.make<arith::CmpIOp>(arith::CmpIPredicate::ne,
                                    code.make<arith::AndIOp>(code.number(part), code.i32(int64_t{1} << index)),
                                    code.i32(0));
  }
  /// Whether the thread's bit selects the later half.
  Value isLater(const simt::AxisBit &bit) {
    const Value set = bitOf(bit.part, bit.index);
    return op.getReverse() ? isNot(set) : set;
  }
  /// 0 … count − 1 in the scan's direction.
  SmallVector<int64_t> inOrder(int64_t count) {
    auto numbers = llvm::to_vector(llvm::seq(count));
    if (op.getReverse())
      std::reverse(numbers.begin(), numbers.end());
    return numbers;
  }
  /// The byte offset of the totals of the thread's lines, without its constant part.
  Value addressOfLines(int64_t size) {
    Value address = code.held(op.getBuffer());
    for (unsigned dim = 0; dim < layout.rank(); ++dim)
      if (dim != axis)
        address = code.add(address, code.times(code.threadOffset(attribute, dim), plan.strides[dim] * size));
    return address;
  }
  int64_t displacementOf(size_t line, int64_t size) {
    int64_t number = 0;
    const auto position = layout.positionOf(stored[0][line]);
    for (unsigned dim = 0; dim < layout.rank(); ++dim)
      number += dim == axis ? 0 : position[dim] * plan.strides[dim];
    return number * size;
  }
  /// Whether a line is inside the tile; null if it is for all threads.
  Value isWithin(size_t line) {
    Value within;
    for (unsigned dim = 0; dim < layout.rank(); ++dim)
      if (dim != axis)
        within = code.both(within, code.isWithin(attribute, stored[0][line], dim));
    return within;
  }
  static Type storedType(Type element) {
    return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : element;
  }

  ThreadCode &code;
  OpTy op;
  const Combiner combiner;
  Emit emit;
  const LayoutAttr attribute;
  const TileLayout layout;
  const unsigned axis;
  const simt::ScanPlan plan;
  SmallVector<int64_t> bytes;               // element size of each tile
  SmallVector<int64_t> steps;               // positions of thread 0 along the axis, in increasing order
  std::vector<SmallVector<int64_t>> stored; // register index by step and line
  std::vector<State> elements;              // by step
};

template <class OpTy> void Scanner<OpTy>::findLines() {
  for (int64_t index = 0; index < layout.numStored(); ++index)
    if (const int64_t at = layout.positionOf(index)[axis]; !llvm::is_contained(steps, at))
      steps.push_back(at);
  llvm::sort(steps);
  for (const int64_t step : steps) {
    auto &indices = stored.emplace_back();
    for (int64_t index = 0; index < layout.numStored(); ++index) {
      SmallVector<int64_t> position = layout.positionOf(index);
      if (position[axis] != steps[0])
        continue;
      position[axis] = step;
      indices.push_back(*layout.storedAt(position));
    }
  }
}

template <class OpTy> void Scanner<OpTy>::read() {
  State all;
  for (const Value source : op.getSources())
    all.push_back(code.held(source));
  if (combiner.hasNeutral() && op.getReverse()) // padding comes first
    all[0] = code.paddedWith(combiner.neutral()[0], all[0], attribute, axis);
  for (const SmallVector<int64_t> &indices : stored) {
    State &state = elements.emplace_back();
    for (const Value vector : all)
      state.push_back(code.pick(vector, indices));
  }
}

/// Sets the results: combines elements with the offsets of their blocks, each of 2^blockBits positions.
template <class OpTy> void Scanner<OpTy>::write(ArrayRef<Offset> offsets, unsigned blockBits) {
  std::vector<State> results;
  size_t block = 0;
  for (size_t step = 0; step < steps.size(); ++step) {
    block += step > 0 && steps[step] >> blockBits != steps[step - 1] >> blockBits;
    results.push_back(after(offsets[block], elements[step]));
  }
  for (const auto [number, result] : llvm::enumerate(op.getResults())) {
    Values values(layout.numStored());
    for (const auto [indices, state] : llvm::zip_equal(stored, results)) {
      auto parts = vector::ToElementsOp::create(code.builder, code.loc, state[number]);
      for (const auto [index, part] : llvm::zip_equal(indices, parts.getResults()))
        values[index] = part;
    }
    code.set(result, values);
  }
}

// --- Offsets ---------------------------------------------------------------------------------------------------------

template <class OpTy> State Scanner<OpTy>::after(const Offset &offset, const State &state) {
  if (offset.isNone())
    return state;
  const State both = combine(offset.state, state);
  return offset.has ? choose(offset.has, both, state) : both;
}

/// `outer` and then `inner`.
template <class OpTy> Offset Scanner<OpTy>::joined(const Offset &outer, const Offset &inner) {
  if (outer.isNone() || inner.isNone())
    return outer.isNone() ? inner : outer;
  State both = combine(outer.state, inner.state);
  if (inner.has)
    both = choose(inner.has, both, outer.state);
  if (outer.has)
    both = choose(outer.has, both, inner.state);
  const Value has = outer.has && inner.has ? code.make<arith::OrIOp>(outer.has, inner.has) : Value();
  return {both, has};
}

template <class OpTy> Offset Scanner<OpTy>::choose(Value condition, const Offset &a, const Offset &b) {
  if (a.isNone() && b.isNone())
    return {};
  if (a.isNone())
    return {b.state, code.both(isNot(condition), b.has)};
  if (b.isNone())
    return {a.state, code.both(condition, a.has)};
  Value has;
  if (a.has || b.has) {
    const Value always = code.make<arith::ConstantIntOp>(1, 1);
    has = emit.select(condition, a.has ? a.has : always, b.has ? b.has : always);
  }
  return {choose(condition, a.state, b.state), has};
}

// --- Within a warp ---------------------------------------------------------------------------------------------------

class WarpScanner : public Scanner<simt::ScanOp> {
public:
  using Scanner::Scanner;

  void lower() {
    read();
    const auto bits = layout.axisBits(axis);
    const bool isWhole = !plan.crossesWarps(); // then repeats of the core count, too
    const unsigned end = plan.partBits;
    unsigned done = 0;
    while (done < end && bits[done].part == Hw::reg)
      ++done;
    const unsigned inner = done == end && isWhole ? topBit : done;
    blockElements(inner);
    std::vector<Offset> offsets(totals.size(), nothing());
    while (done < end) {
      const bool isLanes = bits[done].part == Hw::lane;
      const unsigned first = done;
      while (done < end && (bits[done].part == Hw::lane) == isLanes)
        ++done;
      if (isLanes)
        joinLanes(llvm::ArrayRef(bits).slice(first, done - first), offsets);
      else
        joinBlocks(done == end && isWhole ? topBit : done, offsets);
    }
    if (isWhole && blocks.size() > 1)
      joinBlocks(topBit, offsets);
    if (plan.crossesWarps())
      leaveTotals();
    write(offsets, inner);
  }

private:
  static constexpr unsigned topBit = 63; // above all positions

  void blockElements(unsigned blockBits);
  void joinLanes(ArrayRef<simt::AxisBit> bits, std::vector<Offset> &offsets);
  void joinBlocks(unsigned blockBits, std::vector<Offset> &offsets);
  void leaveTotals();

  std::vector<State> totals;   // total of each of the thread's blocks
  SmallVector<int64_t> blocks; // first position of each block, in thread 0
  SmallVector<size_t> blockOf; // for each initial block, its present block
};

/// Scans each block.
void WarpScanner::blockElements(unsigned blockBits) {
  std::vector<State> scanned = elements;
  SmallVector<size_t> last;
  for (const int64_t step : inOrder(static_cast<int64_t>(steps.size()))) {
    const int64_t begin = steps[step] >> blockBits << blockBits;
    const int64_t before = op.getReverse() ? step + 1 : step - 1;
    const bool isFirst = before < 0 || before >= static_cast<int64_t>(steps.size()) ||
                         steps[before] >> blockBits != steps[step] >> blockBits;
    if (isFirst) {
      blocks.push_back(begin);
      totals.emplace_back();
    } else {
      scanned[step] = combine(scanned[before], elements[step]);
    }
    totals.back() = scanned[step];
  }
  elements = std::move(scanned);
  if (op.getReverse()) {
    std::reverse(blocks.begin(), blocks.end());
    std::reverse(totals.begin(), totals.end());
  }
  blockOf.assign(llvm::seq<size_t>(0, blocks.size()).begin(), llvm::seq<size_t>(0, blocks.size()).end());
}

/// Merges blocks of lanes that differ in these bits. Lanes exchange their blocks' totals.
void WarpScanner::joinLanes(ArrayRef<simt::AxisBit> bits, std::vector<Offset> &offsets) {
  std::vector<Offset> before(totals.size(), nothing());
  for (const simt::AxisBit &bit : bits) {
    const Value later = isLater(bit);
    for (const auto [total, offset] : llvm::zip_equal(totals, before)) {
      State other;
      for (const Value vector : total)
        other.push_back(code.exchanged(vector, int64_t{1} << bit.index));
      // The other lane's block precedes the later lane's block.
      const State own = total;
      if (combiner.hasNeutral()) {
        offset.state = combine(choose(later, other, neutral()), offset.state);
        total = combine(own, other); // kinds are commutative
      } else {
        offset = joined({other, later}, offset);
        total = combine(choose(later, other, own), choose(later, own, other));
      }
    }
  }
  for (const auto [block, offset] : llvm::enumerate(offsets))
    offset = joined(before[blockOf[block]], offset);
}

/// Merges adjacent blocks of a thread into one of 2^blockBits positions.
void WarpScanner::joinBlocks(unsigned blockBits, std::vector<Offset> &offsets) {
  std::vector<Offset> before(totals.size());
  std::vector<State> joint;
  SmallVector<int64_t> begins;
  SmallVector<size_t> jointOf(totals.size());
  for (const int64_t number : inOrder(static_cast<int64_t>(totals.size()))) {
    const int64_t begin = blocks[number] >> blockBits << blockBits;
    if (begins.empty() || begins.back() != begin) {
      begins.push_back(begin);
      joint.push_back(totals[number]);
    } else {
      before[number] = {joint.back(), {}};
      joint.back() = combine(joint.back(), totals[number]);
    }
    jointOf[number] = joint.size() - 1;
  }
  for (const auto [block, offset] : llvm::enumerate(offsets)) {
    offset = joined(before[blockOf[block]], offset);
    blockOf[block] = jointOf[blockOf[block]];
  }
  if (op.getReverse()) {
    std::reverse(begins.begin(), begins.end());
    std::reverse(joint.begin(), joint.end());
    for (size_t &block : blockOf)
      block = joint.size() - 1 - block;
  }
  blocks = std::move(begins);
  totals = std::move(joint);
}

/// One lane of a warp writes the totals of its parts.
void WarpScanner::leaveTotals() {
  Value writes = code.isOwner(layout);
  for (const simt::AxisBit &bit : layout.axisBits(axis))
    if (bit.part == Hw::lane)
      writes = code.both(writes, isNot(bitOf(Hw::lane, bit.index)));
  const auto begins = plan.offsets(bytes);
  for (const auto [number, source] : llvm::enumerate(op.getSources())) {
    const int64_t size = bytes[number];
    Value address = addressOfLines(size);
    if (const Value share = code.threadOffset(attribute, axis)) {
      const Value part = code.make<arith::ShRUIOp>(share, code.i32(plan.partBits));
      address = code.add(address, code.times(part, size));
    }
    const Type element = getElementTypeOrSelf(source.getType());
    const auto vectorType = VectorType::get({1}, storedType(element));
    for (const auto [begin, total] : llvm::zip_equal(blocks, totals)) {
      auto values = vector::ToElementsOp::create(code.builder, code.loc, total[number]);
      for (const auto [line, value] : llvm::enumerate(values.getResults())) {
        const Value wide = element.isInteger(1) ? code.make<arith::ExtUIOp>(storedType(element), value) : value;
        simt::StoreOp::create(code.builder, code.loc, simt::Space::Shared,
                              code.make<vector::BroadcastOp>(vectorType, wide), address,
                              begins[number] + displacementOf(line, size) + (begin >> plan.partBits) * size,
                              code.both(writes, isWithin(line)));
      }
    }
  }
}

// --- Between warps ---------------------------------------------------------------------------------------------------

class Carrier : public Scanner<simt::CarryOp> {
public:
  using Scanner::Scanner;

  void lower() {
    read();
    const std::vector<State> totals = readTotals();
    std::vector<Offset> before(totals.size()); // for each part
    Offset sum = nothing();
    for (const int64_t part : inOrder(plan.parts)) {
      before[part] = sum;
      sum = joined(sum, {totals[part], {}});
    }
    SmallVector<simt::AxisBit> warps;
    for (const simt::AxisBit &bit : layout.axisBits(axis))
      if (bit.part == Hw::warp)
        warps.push_back(bit);
    std::vector<Offset> offsets; // for the thread's own parts
    for (size_t step = 0; step < steps.size(); ++step)
      if (step == 0 || steps[step] >> plan.partBits != steps[step - 1] >> plan.partBits)
        offsets.push_back(ofOwn(steps[step] >> plan.partBits, warps, before));
    write(offsets, plan.partBits);
  }

private:
  std::vector<State> readTotals();

  /// The total before `part` (numbered as in thread 0, combined with the warp's bits).
  Offset ofOwn(int64_t part, ArrayRef<simt::AxisBit> warps, const std::vector<Offset> &before) {
    if (warps.empty())
      return before[part];
    const simt::AxisBit &bit = warps.back();
    const Offset with = ofOwn(part + (int64_t{1} << (bit.bit - plan.partBits)), warps.drop_back(), before),
                 without = ofOwn(part, warps.drop_back(), before);
    return choose(bitOf(Hw::warp, bit.index), with, without);
  }
};

/// Reads the totals of all parts of the thread's lines, several at a time.
std::vector<State> Carrier::readTotals() {
  std::vector<State> totals(plan.parts);
  const size_t lines = stored[0].size();
  const auto begins = plan.offsets(bytes);
  for (const auto [number, source] : llvm::enumerate(op.getSources())) {
    const Type element = getElementTypeOrSelf(source.getType());
    int64_t width = 1;
    while (plan.parts % (2 * width) == 0 && 2 * width * bytes[number] <= 16)
      width *= 2;
    const auto vectorType = VectorType::get({width}, storedType(element));
    const Value address = addressOfLines(bytes[number]);
    std::vector<Values> byPart(plan.parts);
    for (size_t line = 0; line < lines; ++line)
      for (int64_t part = 0; part < plan.parts; part += width) {
        const Value within = isWithin(line);
        const Value other = within ? code.make<arith::ConstantOp>(code.builder.getZeroAttr(vectorType)) : Value();
        const int64_t displacement = begins[number] + displacementOf(line, bytes[number]) + part * bytes[number];
        const Value loaded =
            code.make<simt::LoadOp>(vectorType, simt::Space::Shared, address, displacement, within, other);
        auto values = vector::ToElementsOp::create(code.builder, code.loc, loaded);
        for (const auto [next, value] : llvm::enumerate(values.getResults()))
          byPart[part + next].push_back(element.isInteger(1) ? code.make<arith::TruncIOp>(element, value) : value);
      }
    for (const auto [state, values] : llvm::zip_equal(totals, byPart))
      state.push_back(
          code.make<vector::FromElementsOp>(VectorType::get({static_cast<int64_t>(lines)}, element), values));
  }
  return totals;
}

} // namespace

void distribute(ThreadCode &code, simt::ScanOp op) { WarpScanner(code, op).lower(); }
void distribute(ThreadCode &code, simt::CarryOp op) { Carrier(code, op).lower(); }

} // namespace kiln::lowering::gpu
