// Nests that compute several rows at a time. Rows of a gather are at arbitrary addresses, and should not wait for each
// other. Sums of short rows end in one cross-lane reduction for as many rows as there are lanes.

#include "lowering/cpu/Group.h"
#include "lowering/cpu/Nest.h"

using namespace mlir;

namespace kiln::lowering::cpu {

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

} // namespace kiln::lowering::cpu
