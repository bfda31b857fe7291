// Emits nests that compute several rows at a time.

#include "lowering/cpu/DotOperands.h"
#include "lowering/cpu/Group.h"
#include "lowering/cpu/Nest.h"

using namespace mlir;

namespace kiln::lowering::cpu {

// --- Rows side by side -----------------------------------------------------------------------------------------------

// Rows of a gather are at arbitrary addresses, and should not wait for each
// other. Sums of short rows end in one cross-lane reduction for as many rows as there are lanes.

/// Rows of at most this many vectors, for which the cross-lane reduction matters.
static constexpr int64_t longestTogether = 8;

bool Nest::gathersRows() {
  return reductions.empty() && scans.empty() && !mask && shape.size() == 2 && shape[0] % sideBySide == 0 &&
         llvm::any_of(accessesOf(roots, e), [](tile::AccessOp access) {
           return access.isLoad() && access.getIndexRank() == 1 && access.getTile().getType().getRank() > 1;
         });
}

void Nest::rowsAbreast(Index &index) {
  auto four = [&](Index first, int64_t abreast) -> SmallVector<Value> {
    if (abreast > 1)
      vectorsOfRows(first[0], abreast);
    else
      e.loop(e.constantIndex(0), e.constantIndex(sideBySide), 1,
             [&](Ix row) { vectorsOfRows(e.along(e.make<arith::AddIOp>(first[0].at, row.at)), 1); });
    return {};
  };
  e.loop(e.constantIndex(0), e.constantIndex(shape[0]), sideBySide, [&](Ix first) {
    index[0] = first;
    inOrOver(index, {}, four);
  });
}

void Nest::vectorsOfRows(Ix first, int64_t count) {
  const int64_t extent = shape[1], lanes = e.machine.lanes(), full = extent / lanes * lanes;
  SmallVector<Ix> rows = {first};
  for (int64_t row = 1; row < count; ++row)
    rows.push_back(e.along(e.make<arith::AddIOp>(first.at, e.constantIndex(row))));
  auto step = [&](Ix columns) {
    for (Ix row : rows)
      for (const Root &root : roots)
        e.at(root.value, {row, columns});
    States none;
    for (Ix row : rows)
      all({row, columns}, none);
  };
  if (full)
    e.loop(e.constantIndex(0), e.constantIndex(full), lanes, [&](Ix base) { step(lanesAt(base.at, 0, lanes)); });
  forEach(remainder(full, extent), step);
}

bool Nest::reducesTogether() {
  return !reductions.empty() && scans.empty() && shape.size() == 2 && shape[0] >= e.machine.lanes() &&
         shape[1] <= longestTogether * e.machine.lanes() &&
         llvm::all_of(reductions, [](auto &entry) { return entry.first->buffer && !entry.second.hasIndex(); });
}

void Nest::rowsTogether(Index &index) {
  const int64_t lanes = e.machine.lanes();
  SmallVector<Value> left;
  e.moveTo(0);
  for (auto &[root, reduction] : reductions)
    left.push_back(memref::AllocaOp::create(
        e.builder, e.loc, MemRefType::get({lanes, lanes}, getElementTypeOrSelf(reduction.neutral()[0].getType())),
        e.builder.getI64IntegerAttr(64)));
  e.loop(e.constantIndex(0), e.constantIndex(shape[0]), lanes, [&](Ix first) {
    Value end = e.least(e.make<arith::AddIOp>(first.at, e.constantIndex(lanes)), e.constantIndex(shape[0]));
    auto leaveRow = [&](Ix position) {
      index[0] = position;
      const States state = row(index);
      Value number = e.make<arith::SubIOp>(position.at, first.at);
      for (auto [buffer, vector] : llvm::zip(left, state))
        e.storeBuffer(vector[0], buffer, {e.along(number), e.lanesFrom(e.constantIndex(0), lanes)});
    };
    inVersions({}, [&]() -> SmallVector<Value> {
      e.loop(first.at, end, 1, leaveRow);
      return {};
    });
    for (auto [buffer, entry] : llvm::zip(left, reductions)) {
      SmallVector<Value> states;
      for (int64_t i = 0; i < lanes; ++i) { // those past the last row are unused
        SmallVector<Value> at = {e.constantIndex(i), e.constantIndex(0)};
        auto type = e.vectorOf(getElementTypeOrSelf(buffer.getType()));
        e.moveTo(e.depth());
        states.push_back(e.noted(vector::LoadOp::create(e.builder, e.loc, type, buffer, at), e.depth()));
      }
      Value results = entry.second.acrossLanesOfAll(states);
      e.storeBuffer(results, entry.first->buffer, {e.lanesFrom(first.at, lanes)});
    }
  });
}

// --- Transposed tiles ------------------------------------------------------------------------------------------------

// Nests that transpose tiles into scratch memory. The source is read along its rows, if it is inside its views, and
// square blocks of vectors are transposed in registers. Lane by lane, each element would take a load and a shuffle. In
// blocks of 16 rows it takes 1/16 of a load and 1/4 of a shuffle.

void Nest::transposeBlocks() {
  const auto order = cast<tile::TransposeOp>(roots.front().op).getPermutation();
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const int64_t across = llvm::find(order, last) - order.begin(); // the dimension of the source's rows
  outerInOrOver(across, {}, [&](Index &position, int64_t unroll, ValueRange) -> SmallVector<Value> {
    if (unroll > 1)
      vectorsAlong(last, [&](Ix row) {
        vectorsAlong(across, [&](Ix column) { transposeBlock(position, across, row, column); });
      });
    else // cut by an edge
      loop(shape[across], 1, {}, [&](Ix row, ValueRange) -> SmallVector<Value> {
        position[across] = row;
        vectorsAlong(last, [&](Ix columns) {
          position[last] = columns;
          States none;
          all(position, none);
        });
        return {};
      });
    return {};
  });
}

void Nest::vectorsAlong(int64_t axis, function_ref<void(Ix)> body) {
  const int64_t lanes = e.machine.lanes(), whole = shape[axis] / lanes * lanes;
  if (whole)
    loop(whole, lanes, {}, [&](Ix base, ValueRange) -> SmallVector<Value> {
      body(lanesAt(base.at, 0, lanes));
      return {};
    });
  if (shape[axis] > whole)
    body(lanesAt(e.constantIndex(whole), 0, shape[axis] - whole));
}

void Nest::transposeBlock(Index index, int64_t across, const Ix &row, const Ix &column) {
  const Root &root = roots.front();
  const auto at = [&](const Ix &first, int64_t lane) {
    Value position = e.make<arith::AddIOp>(first.at, e.constantIndex(lane));
    return Ix{position, std::max(e.depthOf(position), outermost)};
  };
  index[across] = column;
  SmallVector<Value> block;
  for (int64_t lane = 0; lane < row.valid; ++lane) {
    index.back() = at(row, lane);
    block.push_back(e.vectorAt(root.value, index));
  }
  Value zeros = e.asVector(
      e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(getElementTypeOrSelf(root.value.getType())))));
  block.resize(e.machine.lanes(), zeros);
  block = transposed(e, std::move(block));
  index.back() = row;
  for (int64_t lane = 0; lane < column.valid; ++lane) {
    index[across] = at(column, lane);
    e.place(block[lane], root.value, root.buffer, index);
  }
}

} // namespace kiln::lowering::cpu
