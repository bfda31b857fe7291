// The bodies of loops and branches during tracing: a stack of frames.

#include "dialect/dsl/Tracer.h"

using namespace mlir;

namespace kiln {

/// The deepest nesting of bodies.
static constexpr size_t maxNesting = 64;

size_t Tracer::open(Body kind, Loc loc) {
  const bool isLoop = kind == Body::loop || kind == Body::condition;
  Frame frame;
  frame.body = new Block;
  frame.kind = kind;
  frame.loc = loc;
  if (isLoop)
    frame.body->addArgument(builder.getI64Type(), at(loc));
  frame.cells.resize(cells.size());
  for (auto [tile, cell] : llvm::zip(cells, frame.cells)) {
    if (!tile)
      continue;
    cell.tile = tile;
    cell.declared = tile->declared;
    cell.content = tile->value;
    // A value out of scope is kept, so that reading it is still an error.
    if (mlir::Value value = held(*tile); value && isOpen(value.getParentBlock()))
      cell.before = value;
    if (!isLoop || !cell.before)
      continue;
    cell.argument = frame.body->addArgument(cell.before.getType(), at(tile->declared));
    noteLike(cell.argument, cell.before);
    rebind(*tile, cell.argument);
  }
  builder.setInsertionPointToEnd(frame.body);
  frames.push_back(std::move(frame));
  return frames.size() - 1;
}

Frame Tracer::close() {
  Frame frame = std::move(frames.back());
  frames.pop_back();
  builder.setInsertionPointToEnd(frames.empty() ? &function.front() : frames.back().body);
  return frame;
}

void Tracer::discard(size_t depth) {
  while (frames.size() > depth) {
    Frame frame = close();
    for (FrameCell &cell : frame.cells)
      if (cell.tile)
        restore(cell);
    bury(frame.body);
  }
}

size_t Tracer::openTraced(Body kind, Loc loc, llvm::function_ref<void()> trace) {
  for (int left = bodyTraces();; --left) {
    const bool isRehearsal = left > 1;
    const size_t depth = open(kind, loc);
    rehearsals += isRehearsal;
    try {
      trace();
    } catch (...) {
      rehearsals -= isRehearsal;
      discard(depth);
      noteThrown(loc);
      abandonBodies();
      throw;
    }
    rehearsals -= isRehearsal;
    if (!isRehearsal)
      return depth;
    discard(depth);
  }
}

void Tracer::checkNesting(Loc loc) {
  if (frames.size() < maxNesting)
    return;
  error(loc) << "kernel '" << kernel.name << "' nests loops and branches more than " << maxNesting
             << " deep: tracing takes every branch, so that recursion under a traced condition never ends; use "
                "range(), or a host condition";
  throw Abandoned();
}

const Outcome *Tracer::beginBodies(bool isLoop, Loc loc) {
  checkNesting(loc);
  const size_t depth = frames.size();
  if (outcomes.size() <= depth)
    outcomes.resize(depth + 1);
  const size_t place = outcomes[depth].size();
  begun.push_back(place);
  outcomes[depth].emplace_back().isLoop = isLoop;
  if (!bodies.withoutThose || depth != bodies.depth)
    return nullptr;
  const auto &known = (*bodies.withoutThose)[depth];
  bool same = place < known.size() && known[place].isLoop == isLoop;
  if (same && known[place].keepsTiles)
    return nullptr;
  if (same)
    for (auto &[position, type, element] : known[place].changed)
      same &= position < cells.size() && cells[position] &&
              (!isLoop || (held(*cells[position]) && held(*cells[position]).getType() == type &&
                           elementOf(held(*cells[position])) == element));
  if (!same) {
    error(loc) << "expected the same loops and branches";
    throw Abandoned();
  }
  return &known[place];
}

Outcome &Tracer::endBodies(ArrayRef<Tile *> changed, size_t before, const Leaves &leaves, Loc loc) {
  Outcome &outcome = outcomes[frames.size()][begun.back()];
  begun.pop_back();
  outcome.keepsTiles = cells.size() > before;
  for (Tile *tile : changed)
    outcome.changed.push_back({tile->cell, held(*tile).getType(), elementOf(held(*tile))});
  for (Leave kind : everyLeave)
    outcome.leaves[static_cast<size_t>(kind)] = static_cast<bool>(leaves[kind]);
  if (!leaves.areNone())
    leave(leaves, loc);
  return outcome;
}

bool Tracer::isOpen(Block *block) const {
  return block == &const_cast<func::FuncOp &>(function).front() ||
         llvm::any_of(frames, [&](const Frame &frame) { return frame.body == block; });
}

} // namespace kiln
