// Emits nests along columns: lanes are adjacent columns, and each has its own reduction or scan.

#include "lowering/cpu/Nest.h"

using namespace mlir;

namespace kiln::lowering::cpu {

int64_t Nest::maxColumns() {
  constexpr int64_t little = 6; // few enough not to delay memory accesses
  if (llvm::any_of(roots, [&](const Root &root) { return e.costsMoreThan(little, root.value); }))
    return sideBySide;
  int64_t registers = 0;
  scans.begin();
  for (Value state : scans.with(flat({neutral()})))
    registers += llvm::divideCeil(e.machine.lanes() * getElementTypeOrSelf(state.getType()).getIntOrFloatBitWidth(),
                                  e.machine.vectorBits);
  return std::max(sideBySide, e.machine.registers / 2 / std::max<int64_t>(1, registers));
}

int64_t Nest::apartInColumns(int64_t axis) {
  const auto rows = static_cast<int64_t>(shape.size()) - 2;
  const int64_t width = shape.back();
  return axis == rows && !reductions.empty() && width > 1 && width < e.machine.lanes() &&
                 llvm::product_of(shape) >= e.machine.fewestOfNarrowRows()
             ? rowsOfStep(sideBySide)
             : 1;
}

Nest::States Nest::metInColumns(SmallVector<States> apart) {
  const auto combine = [&](States &one, const States &other) {
    for (auto [entry, state, next] : llvm::zip_equal(reductions, one, other))
      state = entry.second.combine(state, next);
  };
  const auto period = static_cast<size_t>(rowsOfPeriod());
  for (size_t i = period; i < apart.size(); ++i)
    combine(apart[i % period], apart[i]);
  apart.resize(std::min(apart.size(), period));
  for (; apart.size() > 1; apart.resize(llvm::divideCeil(apart.size(), 2)))
    for (size_t i = 0, half = llvm::divideCeil(apart.size(), 2); i + half < apart.size(); ++i)
      combine(apart[i], apart[i + half]);
  return apart.front();
}

void Nest::columns(Index &index, int64_t axis, int64_t unroll) {
  const int64_t extent = shape.back(), lanes = e.machine.lanes(), full = extent / lanes;
  // The fewest blocks, of equal size except for the last one.
  const int64_t blocks = llvm::divideCeil(full, unroll > 1 ? maxColumns() : 1);
  const int64_t each = blocks ? llvm::divideCeil(full, blocks) : 0, looped = blocks > 1 ? full / each * each : 0;
  const int64_t apart = full ? 1 : apartInColumns(axis), whole = shape[axis] / apart * apart;
  auto block = [&](Value base, int64_t copies, int64_t valid) {
    SmallVector<Ix> positions;
    for (int64_t copy = 0; copy < copies; ++copy)
      positions.push_back(lanesAt(base, copy * lanes, valid));
    scans.begin();
    SmallVector<States> states(copies * apart, neutral());
    SmallVector<Value> carries;
    for (int64_t copy = 0; copy < copies; ++copy)
      carries = scans.with(std::move(carries));
    // Adds the rows [from, to); each of `step` rows has its own states. A block of columns has its carries after the
    // states and the carries of preceding blocks.
    const auto addRows = [&](int64_t from, int64_t to, int64_t step) {
      SmallVector<Value> carried = flat(states);
      llvm::append_range(carried, carries);
      const auto results =
          e.loop(e.constantIndex(from), e.constantIndex(to), step, carried, [&](Ix first, ValueRange before) {
            SmallVector<States> inner = unflat(before, copies * step);
            SmallVector<Value> previous(before.take_back(copies * scans.width()));
            for (int64_t row = 0; row < step; ++row) {
              Ix position = row ? e.along(e.make<arith::AddIOp>(first.at, e.constantIndex(row))) : first;
              if (scans.isBackwards())
                position = e.along(e.make<arith::SubIOp>(e.constantIndex(shape[axis] - 1), position.at));
              index[axis] = position;
              if (!scans.empty())
                readAll(index, positions);
              SmallVector<Value> next;
              for (int64_t copy = 0; copy < copies; ++copy) {
                index.back() = positions[copy];
                scans.take(ArrayRef(previous).drop_back((copies - 1 - copy) * scans.width()));
                this->step(index, inner[row * copies + copy]);
                next = scans.with(std::move(next));
              }
              previous = std::move(next);
            }
            SmallVector<Value> after = flat(inner);
            llvm::append_range(after, previous);
            return after;
          });
      states = unflat(results, copies * step);
      carries.assign(results.end() - copies * scans.width(), results.end());
    };
    const auto takeCarries = [&](int64_t copy) {
      scans.take(ArrayRef(carries).drop_back((copies - 1 - copy) * scans.width()));
    };
    if (whole)
      addRows(0, whole, apart);
    if (apart > 1) // of a single block
      states = {metInColumns(states)};
    if (whole < shape[axis])
      addRows(whole, shape[axis], 1);
    for (int64_t copy = 0; copy < copies && !scans.empty(); ++copy) {
      index.back() = positions[copy];
      takeCarries(copy);
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
