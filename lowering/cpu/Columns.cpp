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

Nest::Values Nest::addRow(Index &index, const Block &block, MutableArrayRef<States> states, ValueRange carries) {
  if (!scans.empty())
    readAll(index, block.positions);
  Values next;
  for (auto [copy, position] : llvm::enumerate(block.positions)) {
    index.back() = position;
    scans.take(carries.slice(copy * scans.width(), scans.width()));
    step(index, states[copy]);
    next = scans.with(std::move(next));
  }
  return next;
}

void Nest::addRows(Index &index, int64_t axis, Block &block, int64_t from, int64_t to, int64_t rows) {
  const auto copies = static_cast<int64_t>(block.positions.size());
  Values carried = flat(block.states);
  llvm::append_range(carried, block.carries);
  const auto results =
      e.loop(e.constantIndex(from), e.constantIndex(to), rows, carried, [&](Ix first, ValueRange before) {
        SmallVector<States> states = unflat(before, copies * rows);
        Values carries(before.take_back(copies * scans.width()));
        for (int64_t row = 0; row < rows; ++row) {
          Ix position = row ? e.along(e.make<arith::AddIOp>(first.at, e.constantIndex(row))) : first;
          if (scans.isBackwards())
            position = e.along(e.make<arith::SubIOp>(e.constantIndex(shape[axis] - 1), position.at));
          index[axis] = position;
          carries = addRow(index, block, MutableArrayRef(states).slice(row * copies, copies), carries);
        }
        Values after = flat(states);
        llvm::append_range(after, carries);
        return after;
      });
  block.states = unflat(results, copies * rows);
  block.carries.assign(results.end() - copies * scans.width(), results.end());
}

void Nest::finishColumns(Index &index, int64_t axis, Block &block) {
  for (auto [copy, position] : llvm::enumerate(block.positions)) {
    index.back() = position;
    if (!scans.empty()) {
      scans.take(ValueRange(block.carries).slice(copy * scans.width(), scans.width()));
      scans.finish(index);
    }
  }
  for (auto [copy, position] : llvm::enumerate(block.positions))
    for (auto [r, entry] : llvm::enumerate(reductions)) {
      Index outside(index);
      outside.back() = position;
      outside.erase(outside.begin() + axis);
      e.storeBuffer(entry.second.lanes(block.states[copy][r]), entry.first->buffer, outside);
    }
}

void Nest::columnBlock(Index &index, int64_t axis, int64_t apart, SmallVector<Ix> positions) {
  scans.begin();
  const size_t copies = positions.size();
  Block block{std::move(positions), SmallVector<States>(copies * apart, neutral()), {}};
  for (size_t copy = 0; copy < copies; ++copy)
    block.carries = scans.with(std::move(block.carries));
  const int64_t whole = shape[axis] / apart * apart;
  if (whole)
    addRows(index, axis, block, 0, whole, apart);
  if (apart > 1) // of a single vector
    block.states = {metInColumns(block.states)};
  if (whole < shape[axis])
    addRows(index, axis, block, whole, shape[axis], 1);
  finishColumns(index, axis, block);
}

void Nest::columns(Index &index, int64_t axis, int64_t unroll) {
  const int64_t extent = shape.back(), lanes = e.machine.lanes(), full = extent / lanes;
  // The fewest blocks, of equal size except for the last one.
  const int64_t blocks = llvm::divideCeil(full, unroll > 1 ? maxColumns() : 1);
  const int64_t each = blocks ? llvm::divideCeil(full, blocks) : 0, looped = blocks > 1 ? full / each * each : 0;
  const int64_t apart = full ? 1 : apartInColumns(axis);
  const auto block = [&](Value base, int64_t copies, int64_t valid) {
    SmallVector<Ix> positions;
    for (int64_t copy = 0; copy < copies; ++copy)
      positions.push_back(lanesAt(base, copy * lanes, valid));
    columnBlock(index, axis, apart, std::move(positions));
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
