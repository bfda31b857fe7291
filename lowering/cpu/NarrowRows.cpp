// Emits nests of rows narrower than a vector, such as points (N, 3) or pairs (N, 2). If rows are contiguous in memory,
// which is checked once for the tile, vectors span several rows. Otherwise each row is a masked vector.

#include "lowering/cpu/Group.h"
#include "lowering/cpu/Nest.h"

#include <numeric>

using namespace mlir;

namespace kiln::lowering::cpu {

/// The extents other than 1.
static SmallVector<int64_t> withoutOnes(ArrayRef<int64_t> shape) {
  return llvm::filter_to_vector(shape, [](int64_t extent) { return extent != 1; });
}

std::optional<SmallVector<Nest::Pitch>> Nest::pitchesOf(tile::AccessOp access) const {
  if (access.getIndexRank() > 0 || access.getMaskIfAny())
    return std::nullopt;
  const auto tile = access.getTile().getType().getShape();
  const auto strides = access.getView().getType().getStridesAndOffset().first;
  const int64_t rows = shape[shape.size() - 2], width = shape.back();
  const SmallVector<int64_t> extents = withoutOnes(tile);
  const bool hasBoth = extents.size() >= 2 && extents.back() == width && extents[extents.size() - 2] == rows;
  if (!hasBoth && !(extents.size() == 1 && (extents[0] == rows || extents[0] == width)))
    return SmallVector<Pitch>{}; // of another shape, or one element
  SmallVector<Pitch> pitches;
  int64_t pitch = 1;
  for (int64_t axis = access.getView().getType().getRank() - 1, found = 0;
       axis >= 0 && found < std::min<int64_t>(2, static_cast<int64_t>(extents.size())); --axis) {
    const int64_t extent = tile[access.getBlockDim(axis)];
    if (extent == 1)
      continue;
    if (ShapedType::isDynamic(strides[axis]))
      pitches.push_back({access.getView(), axis, pitch});
    else if (strides[axis] != pitch)
      return std::nullopt;
    pitch *= extent;
    ++found;
  }
  return pitches;
}

bool Nest::followsFromRows(Value tile) const {
  SmallVector<Value> work = {tile};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!isa<RankedTensorType>(value.getType()) || !seen.insert(value).second)
      continue;
    const auto extents = tile::shapeOf(value.getType());
    if (e.isBuffered(value) && !extents.empty() &&
        llvm::all_of(extents.drop_back(), [](int64_t extent) { return extent == 1; }))
      continue;
    if (e.isBuffered(value) && e.isDense(value))
      continue;
    if (e.isBuffered(value) || !op)
      return false; // its rows are not contiguous
    if (isa<tile::AccessOp>(op) || op->hasTrait<OpTrait::ConstantLike>() || isa<tile::IotaOp>(op))
      continue;
    if (!isElementwise(op) && !isa<tile::BroadcastOp, tile::ReshapeOp>(op))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

bool Nest::takesNarrowRows() {
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const bool isColumns = roots.front().isColumns();
  bool reduces = false;
  const auto isFit = [&](const Root &root) {
    const bool isReduction = root.kind == Root::Kind::reduce && root.axis == last - isColumns && root.buffer &&
                             !(isColumns && cast<tile::ReduceOp>(root.op).getKind() == tile::ReduceKind::ArgMax);
    reduces |= isReduction;
    return (isReduction || (root.kind == Root::Kind::store && !root.places) ||
            (root.kind == Root::Kind::place && e.isDense(root.value))) &&
           followsFromRows(root.value);
  };
  if (mask || last < 1 || laneAxis != last || !llvm::all_of(roots, isFit))
    return false;
  bitsInside = elementBitsOf(roots, e);
  const int64_t lanes = e.machine.vectorBits / bitsInside, width = shape[last];
  if (width == 1 || width >= lanes || (reduces && !isColumns && width > e.machine.widestStride()) ||
      llvm::product_of(shape) < e.machine.fewestOfNarrowRows())
    return false;
  for (tile::AccessOp access : accessesOf(roots, e)) {
    const auto wanted = pitchesOf(access);
    if (!wanted)
      return false;
    llvm::append_range(pitches, *wanted);
  }
  for (const Pitch &a : pitches)
    for (const Pitch &b : pitches)
      if (a.view == b.view && a.axis == b.axis && a.pitch != b.pitch)
        return false;
  for (tile::AccessOp access : accessesOf(roots, e))
    inside = e.both(inside, e.liesInside(access));
  for (const Pitch &wanted : pitches)
    inside = e.both(inside, e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, e.strideAlong(wanted.view, wanted.axis),
                                                  e.constantIndex(wanted.pitch)));
  return true;
}

void Nest::narrowRows() {
  const auto rows = static_cast<int64_t>(shape.size()) - 2;
  Index index(shape.size());
  const auto rowAfterRow = [&](Index position, int64_t from) {
    e.loop(e.constantIndex(from), e.constantIndex(shape[rows]), 1, [&](Ix row) {
      position[rows] = row;
      finishRow(position, Nest::row(position, 1), {});
    });
  };
  outerInOrOver(rows, {}, [&](Index &position, int64_t unroll, ValueRange) -> SmallVector<Value> {
    const bool isColumns = roots.front().isColumns();
    if (unroll == 1) { // cut by an edge, or not contiguous
      isColumns ? columns(position, rows, 1) : rowAfterRow(position, 0);
      return {};
    }
    for (const Pitch &wanted : pitches)
      e.pitches[{wanted.view, wanted.axis}] = wanted.pitch;
    if (isColumns)
      columnsOfLine(position, unroll);
    else if (const int64_t taken = rowsAsVectors(position, unroll); taken < shape[rows])
      rowAfterRow(position, taken);
    e.pitches.clear();
    return {};
  });
}

int64_t Nest::rowsOfPeriod() const { return e.machine.lanes() / std::gcd(e.machine.lanes(), shape.back()); }

int64_t Nest::rowsOfStep(int64_t unroll) const {
  const int64_t period = rowsOfPeriod(), vectors = period * shape.back() / e.machine.lanes();
  return vectors >= unroll || shape[shape.size() - 2] < 2 * unroll * period ? period : unroll / vectors * period;
}

SmallVector<Index> Nest::lineFrom(const Index &index, const Ix &first, int64_t count) {
  const auto last = static_cast<int64_t>(shape.size()) - 1, rows = last - 1;
  const int64_t lanes = e.machine.lanes(), width = shape[last];
  SmallVector<Index> all;
  for (int64_t begin = 0; begin < count * width; begin += lanes) {
    const int64_t row = begin / width;
    Steps down, along;
    for (int64_t element = begin; element < begin + lanes; ++element) {
      down.push_back(element / width - row);
      along.push_back(element % width);
    }
    Index &here = all.emplace_back(index);
    here[rows] = lanesAt(first.at, row, lanes);
    here[rows].steps = e.kept(std::move(down));
    here[last] = lanesAt(e.constantIndex(0), 0, lanes);
    here[last].steps = e.kept(std::move(along));
  }
  for (const Index &here : all)
    for (const Root &root : roots)
      e.at(root.value, here);
  return all;
}

int64_t Nest::rowsAsVectors(Index &index, int64_t unroll) {
  const auto rows = static_cast<int64_t>(shape.size()) - 2;
  const int64_t lanes = e.machine.lanes(),
                step = reductions.empty() ? rowsOfStep(unroll) : lanes; // one result per lane
  const int64_t whole = shape[rows] / step * step;
  if (!whole)
    return 0;
  loop(whole, step, {}, [&](Ix first, ValueRange) -> SmallVector<Value> {
    const SmallVector<Index> all = lineFrom(index, first, step);
    for (const Index &here : all)
      for (const Root &root : roots)
        if (root.kind != Root::Kind::reduce)
          write(root, e.at(root.value, here), here);
    if (!reductions.empty()) {
      index[rows] = lanesAt(first.at, 0, lanes);
      reduceRows(index, all);
    }
    return {};
  });
  return whole;
}

void Nest::columnsOfLine(Index &index, int64_t unroll) {
  const auto last = static_cast<int64_t>(shape.size()) - 1, rows = last - 1;
  const int64_t lanes = e.machine.lanes(), width = shape[last], step = rowsOfStep(unroll),
                vectors = step * width / lanes, whole = shape[rows] / step * step;
  SmallVector<States> states;
  for (int64_t i = 0; i < vectors; ++i)
    states.push_back(neutral());
  if (whole)
    states = unflat(loop(whole, step, flat(states),
                         [&](Ix first, ValueRange before) {
                           SmallVector<States> inner = unflat(before, vectors);
                           for (auto [here, own] : llvm::zip_equal(lineFrom(index, first, step), inner))
                             all(here, own);
                           return flat(inner);
                         }),
                    vectors);
  States sums = neutral();
  for (auto [r, entry] : llvm::enumerate(reductions)) {
    SmallVector<Reduction::State> line;
    for (const States &own : states)
      line.push_back(own[r]);
    if (whole)
      sums[r] = entry.second.periodic(line, width);
  }
  index[last] = lanesAt(e.constantIndex(0), 0, width);
  Values results = flat({sums});
  if (whole < shape[rows])
    results = e.loop(e.constantIndex(whole), e.constantIndex(shape[rows]), 1, results, [&](Ix row, ValueRange before) {
      SmallVector<States> inner = unflat(before, 1);
      index[rows] = row;
      all(index, inner.front());
      return flat(inner);
    });
  sums = unflat(results, 1).front();
  for (auto [entry, sum] : llvm::zip_equal(reductions, sums)) {
    Index outside(index);
    outside.erase(outside.begin() + rows);
    e.storeBuffer(entry.second.lanes(sum), entry.first->buffer, outside);
  }
}

void Nest::reduceRows(const Index &rows, ArrayRef<Index> vectors) {
  const int64_t lanes = e.machine.lanes(), width = shape.back();
  for (auto &[root, reduction] : reductions) {
    SmallVector<Value> elements;
    for (const Index &here : vectors)
      elements.push_back(e.vectorAt(root->value, here));
    SmallVector<Reduction::State> columns;
    for (int64_t column = 0; column < width; ++column) {
      Value all;
      for (int64_t vector = 0; vector < width; ++vector) {
        SmallVector<int64_t> order(lanes);
        bool has = false;
        for (int64_t row = 0; row < lanes; ++row) {
          const int64_t element = row * width + column;
          const bool isHere = element / lanes == vector;
          has |= isHere;
          order[row] = isHere ? lanes + element % lanes : row;
        }
        if (!has)
          continue;
        e.moveTo(e.depth());
        all =
            e.noted(vector::ShuffleOp::create(e.builder, e.loc, all ? all : elements[vector], elements[vector], order),
                    e.depth());
      }
      columns.push_back(reduction.add(reduction.neutral(), all, e.constantIndex(column), /*step=*/false, lanes));
    }
    // In the order of acrossLanes, which reduces a row that is one vector.
    for (auto half = static_cast<int64_t>(llvm::PowerOf2Ceil(width)) / 2; half >= 1; half /= 2)
      for (int64_t i = 0; i < half && i + half < std::min(width, 2 * half); ++i)
        columns[i] = reduction.combine(columns[i], columns[i + half]);
    e.storeBuffer(reduction.lanes(columns.front()), root->buffer, Index(ArrayRef<Ix>(rows).drop_back()));
  }
}

} // namespace kiln::lowering::cpu
