// Nests along columns: the lanes are neighbours in a row, and each has a reduction or a scan of its own.

#include "lowering/cpu/Nest.h"

using namespace mlir;

namespace kiln::lowering::cpu {

int64_t Nest::mostColumns() {
  constexpr int64_t little = 6; // for which memory does not wait
  if (llvm::any_of(roots, [&](const Root &root) { return e.costsMoreThan(little, root.value); }))
    return sideBySide;
  int64_t registers = 0;
  scans.begin();
  for (Value state : scans.with(flat({neutral()})))
    registers += llvm::divideCeil(e.machine.lanes() * getElementTypeOrSelf(state.getType()).getIntOrFloatBitWidth(),
                                  e.machine.vectorBits);
  return std::max(sideBySide, e.machine.registers / 2 / std::max<int64_t>(1, registers));
}

void Nest::columns(Index &index, int64_t axis, int64_t unroll) {
  const int64_t extent = shape.back(), lanes = e.machine.lanes(), full = extent / lanes;
  // No more blocks than there must be, and of one size but for the last one.
  const int64_t blocks = llvm::divideCeil(full, unroll > 1 ? mostColumns() : 1);
  const int64_t each = blocks ? llvm::divideCeil(full, blocks) : 0, looped = blocks > 1 ? full / each * each : 0;
  auto block = [&](Value base, int64_t copies, int64_t valid) {
    SmallVector<States> states;
    for (int64_t copy = 0; copy < copies; ++copy)
      states.push_back(neutral());
    SmallVector<Ix> positions;
    for (int64_t copy = 0; copy < copies; ++copy)
      positions.push_back(lanesAt(base, copy * lanes, valid));
    scans.begin();
    SmallVector<Value> carried = flat(states);
    for (int64_t copy = 0; copy < copies; ++copy)
      carried = scans.with(std::move(carried));
    // The carries of a block of columns, behind the states and those of the blocks before it.
    const auto takeCarries = [&](ValueRange values, int64_t copy) {
      scans.take(values.drop_back((copies - 1 - copy) * scans.width()));
    };
    auto results = loop(shape[axis], 1, carried, [&](Ix position, ValueRange before) {
      SmallVector<States> inner = unflat(before, copies);
      SmallVector<Value> behind;
      if (scans.isBackwards())
        position = e.along(e.make<arith::SubIOp>(e.constantIndex(shape[axis] - 1), position.at));
      index[axis] = position;
      if (!scans.empty())
        readAll(index, positions);
      for (int64_t copy = 0; copy < copies; ++copy) {
        index.back() = positions[copy];
        takeCarries(before, copy);
        step(index, inner[copy]);
        behind = scans.with(std::move(behind));
      }
      SmallVector<Value> after = flat(inner);
      llvm::append_range(after, behind);
      return after;
    });
    states = unflat(results, copies);
    for (int64_t copy = 0; copy < copies && !scans.empty(); ++copy) {
      index.back() = positions[copy];
      takeCarries(results, copy);
      scans.finish(index);
    }
    for (int64_t copy = 0; copy < copies; ++copy)
      for (auto [r, entry] : llvm::enumerate(reductions)) {
        Index outside(index);
        outside.back() = positions[copy];
        outside.erase(outside.begin() + axis);
        e.storeBuffer(entry.second.lanes(states[copy][r]), entry.first->buffer, outside);
      }
  };
  if (looped)
    e.loop(e.constantIndex(0), e.constantIndex(looped * lanes), each * lanes,
           [&](Ix base) { block(base.at, each, lanes); });
  if (full > looped)
    block(e.constantIndex(looped * lanes), full - looped, lanes);
  if (extent % lanes)
    block(e.constantIndex(full * lanes), 1, extent % lanes);
}

} // namespace kiln::lowering::cpu
