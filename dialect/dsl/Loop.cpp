// `range` and `when`: bodies become scf.for and scf.if, with the cells that a body changed as their results.

#include "dialect/dsl/Tracer.h"

#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <exception>

using namespace mlir;

namespace kiln {

/// A traced loop between `range` and the end of its range-for.
struct Loop::State {
  Tracer &tracer;
  Loc loc;
  mlir::Value begin, end, step;
  Block *outside;             // where the loop will stand
  size_t depth = 0;           // of the body among the open ones
  mlir::Value induction = {}; // set when the body has been opened
  int left = 0;               // how often the body is still to be traced
  int exceptions = 0;         // in flight when the loop began: unwinding is no mistake of the loop
  size_t cellsBefore = 0;     // how many cells there were when the loop began
  bool isOpen = false;
};

// --- Closing a loop --------------------------------------------------------------------------------------------------

/// Reports unless `now` may follow `cell` round the loop or out of the branch.
static bool checkChange(Tracer &tracer, const FrameCell &cell, mlir::Value now, const char *body) {
  if (now.getType() == cell.before.getType() && elementOf(now) == elementOf(cell.before))
    return true;
  auto diagnostic = mlir::emitError(now.getLoc());
  diagnostic << "expected a tile that a " << body << " changes to stay " << describe(cell.before) << ", but got "
             << describe(now);
  diagnostic.attachNote(tracer.at(cell.declared)) << "declared here";
  tracer.fail();
  return false;
}

static void reportDestroyed(Tracer &tracer, const Frame &frame, const char *body, Loc loc) {
  for (Loc declared : frame.destroyed) {
    auto diagnostic = tracer.error(loc);
    diagnostic << "expected tiles declared before a " << body << " to outlive it, but one was destroyed in it";
    diagnostic.attachNote(tracer.at(declared)) << "declared here";
  }
}

/// The cells of a loop's frame whose value the body changed.
static SmallVector<FrameCell> carriedCells(Tracer &tracer, Frame &frame, Loc loc) {
  SmallVector<FrameCell> carried;
  for (FrameCell &cell : frame.cells) {
    if (!cell.tile || !cell.argument)
      continue;
    mlir::Value now = Tracer::held(*cell.tile);
    if (!now || now == cell.argument)
      continue;
    if (tracer.read(*cell.tile, loc) && checkChange(tracer, cell, now, "loop body"))
      carried.push_back(cell);
    else
      Tracer::restore(cell);
  }
  return carried;
}

/// Puts `body` into a new scf.for. Arguments of cells that are not carried become the value from outside.
static void buildLoop(const Loop::State &state, Frame &frame, ArrayRef<FrameCell> carried) {
  Tracer &tracer = state.tracer;
  Location loc = tracer.at(state.loc);
  SmallVector<mlir::Value> inits, yields;
  for (const FrameCell &cell : carried) {
    inits.push_back(cell.before);
    yields.push_back(Tracer::held(*cell.tile));
  }
  {
    OpBuilder::InsertionGuard guard(tracer.builder);
    tracer.builder.setInsertionPointToEnd(frame.body);
    scf::YieldOp::create(tracer.builder, loc, yields);
  }
  auto loop = scf::ForOp::create(tracer.builder, loc, state.begin, state.end, state.step, inits);
  loop.getRegion().front().erase();
  loop.getRegion().push_back(frame.body);

  DenseMap<mlir::Value, mlir::Value> replaced;
  llvm::BitVector pruned(frame.body->getNumArguments(), true);
  pruned.reset(0);
  for (const FrameCell &cell : carried)
    pruned.reset(cell.argument.getArgNumber());
  for (FrameCell &cell : frame.cells)
    if (cell.argument && pruned.test(cell.argument.getArgNumber())) {
      cell.argument.replaceAllUsesWith(cell.before);
      replaced[cell.argument] = cell.before;
    }
  tracer.replaceInCells(replaced);
  for (unsigned number : pruned.set_bits()) // another value may lie there next
    tracer.note(frame.body->getArgument(number), i64);
  frame.body->eraseArguments(pruned);
  SmallVector<Tile *> changed;
  for (auto [cell, result] : llvm::zip(carried, loop.getResults())) {
    tracer.noteLike(result, cell.before);
    Tracer::rebind(*cell.tile, result);
    changed.push_back(cell.tile);
  }
  tracer.endBodies(changed, state.cellsBefore);
}

/// A loop that changes its cells by a body that is not traced.
static void buildWithoutBody(const Loop::State &state, const Outcome &outcome) {
  Tracer &tracer = state.tracer;
  SmallVector<mlir::Value> inits;
  SmallVector<Tile *> changed;
  for (auto &[position, type, isUnsigned] : outcome.changed) {
    changed.push_back(&tracer.cellAt(position));
    inits.push_back(Tracer::held(*changed.back()));
  }
  auto loop = scf::ForOp::create(tracer.builder, tracer.at(state.loc), state.begin, state.end, state.step, inits);
  loop.getRegion().front().erase();
  for (auto [tile, result] : llvm::zip(changed, loop.getResults())) {
    tracer.noteLike(result, Tracer::held(*tile));
    Tracer::rebind(*tile, result);
  }
  tracer.endBodies(changed, state.cellsBefore);
}

// --- range -----------------------------------------------------------------------------------------------------------

static void openBody(Loop::State &state) {
  state.depth = state.tracer.open(/*isLoop=*/true, state.loc);
  state.induction = state.tracer.builder.getInsertionBlock()->getArgument(0);
  state.isOpen = true;
  state.tracer.rehearsals += state.left > 1;
}

static void closeBody(Loop::State &state) {
  Tracer &tracer = state.tracer;
  state.isOpen = false;
  if (state.left-- > 1) { // this time was a rehearsal
    tracer.rehearsals--;
    tracer.discard(state.depth);
    openBody(state);
    return;
  }
  SmallVector<FrameCell> carried = carriedCells(tracer, tracer.innermost(), state.loc);
  Frame frame = tracer.close();
  reportDestroyed(tracer, frame, "loop body", state.loc);
  buildLoop(state, frame, carried);
}

/// A step below 1 would never end: a constant one is an error, any other counts as 1.
static mlir::Value checkStep(Verb &verb, mlir::Value step) {
  Literal one;
  one.integer = 1;
  IntegerAttr constant;
  if (step && !matchPattern(step, m_Constant(&constant)))
    return verb.emit<arith::MaxSIOp>(step, verb.constant(one, i64, {}));
  if (step && constant.getInt() >= 1)
    return step;
  if (step)
    verb.expected() << "a step of at least 1, but got " << constant.getInt();
  return verb.constant(one, i64, {});
}

Loop range(At begin, At end, At step, Loc loc) {
  Verb verb("range", loc);
  auto state =
      std::make_unique<Loop::State>(Loop::State{verb.tracer, loc, verb.index(begin, "begin"), verb.index(end, "end"),
                                                verb.index(step, "step"), verb.tracer.builder.getInsertionBlock()});
  // After a mistake in the bounds the body is still traced, for its own mistakes.
  if (!state->begin)
    state->begin = verb.constant({}, i64, {});
  if (!state->end)
    state->end = verb.constant({}, i64, {});
  state->step = checkStep(verb, state->step);
  state->exceptions = std::uncaught_exceptions();
  return Loop(std::move(state));
}

Loop range(At end, Loc loc) { return range(At(0, end.loc), end, At(1, end.loc), loc); }

Loop::Loop(std::unique_ptr<State> state) : state(std::move(state)) {}

Loop::~Loop() {
  if (!state->isOpen)
    return;
  if (std::uncaught_exceptions() <= state->exceptions)
    state->tracer.error(state->loc) << "expected the body of a traced loop to reach its end, but it was left by "
                                       "break or return; use where(), when() or another bound";
  else
    state->tracer.noteThrown(state->loc);
  state->tracer.abandonBodies();
  state->tracer.rehearsals -= state->left > 1;
  state->tracer.discard(state->depth);
}

Loop::Iterator Loop::begin() {
  Tracer &tracer = state->tracer;
  if (state->induction || state->outside != tracer.builder.getInsertionBlock()) {
    tracer.error(state->loc) << "expected a range to be looped over once, where it is written; write it in the 'for'";
    return end();
  }
  state->cellsBefore = tracer.cellCount();
  if (const Outcome *outcome = tracer.beginBodies(/*isLoop=*/true, state->loc)) {
    state->induction = state->begin; // it has been looped over
    buildWithoutBody(*state, *outcome);
    return end();
  }
  state->left = tracer.bodyTraces();
  openBody(*state);
  return Iterator(this);
}

Tile Loop::Iterator::operator*() const { return loop->state->tracer.make(loop->state->induction, loop->state->loc); }

Loop::Iterator &Loop::Iterator::operator++() {
  closeBody(*loop->state);
  return *this;
}

bool Loop::Iterator::operator!=(const Iterator &) const { return loop && loop->state->isOpen; }

// --- when ------------------------------------------------------------------------------------------------------------

/// Traces one side; afterwards the cells hold what they held before, and `after` what the side left in them.
static Frame traceSide(Tracer &tracer, const std::function<void()> &side, Loc loc,
                       DenseMap<Tile *, mlir::Value> &after) {
  for (int left = tracer.bodyTraces();; --left) {
    size_t depth = tracer.open(/*isLoop=*/false, loc);
    tracer.rehearsals += left > 1;
    try {
      if (side)
        side();
    } catch (...) {
      tracer.rehearsals -= left > 1;
      tracer.discard(depth);
      tracer.noteThrown(loc);
      tracer.abandonBodies();
      throw;
    }
    tracer.rehearsals -= left > 1;
    if (left > 1) {
      tracer.discard(depth);
      continue;
    }
    for (FrameCell &cell : tracer.innermost().cells) {
      if (!cell.tile)
        continue;
      mlir::Value now = Tracer::held(*cell.tile);
      if (now && Tracer::isChanged(cell) && tracer.read(*cell.tile, loc))
        after[cell.tile] = now;
    }
    Frame frame = tracer.close();
    reportDestroyed(tracer, frame, "branch body", loc);
    for (FrameCell &cell : frame.cells)
      if (cell.tile)
        Tracer::restore(cell);
    return frame;
  }
}

/// A cell that leaves a branch with another value than it had.
struct Changed {
  Tile *tile;
  mlir::Value then, otherwise;
};

/// The cells that the sides changed. One that was unset before is set after it only if both sides set it.
static SmallVector<Changed> changedCells(Tracer &tracer, const Frame &frame, const DenseMap<Tile *, mlir::Value> &then,
                                         const DenseMap<Tile *, mlir::Value> &otherwise) {
  SmallVector<Changed> changed;
  for (const FrameCell &cell : frame.cells) {
    if (!cell.tile || (!then.count(cell.tile) && !otherwise.count(cell.tile)))
      continue;
    mlir::Value a = then.lookup(cell.tile), b = otherwise.lookup(cell.tile);
    FrameCell expected = cell;
    if (!cell.before) {
      if (!a || !b) { // out of scope from here on
        Tracer::rebind(*cell.tile, a ? a : b);
        continue;
      }
      expected.before = a;
    }
    a = a ? a : cell.before;
    b = b ? b : cell.before;
    if (checkChange(tracer, expected, a, "branch") && checkChange(tracer, expected, b, "branch"))
      changed.push_back({cell.tile, a, b});
  }
  return changed;
}

static void endSide(Tracer &tracer, Location loc, Block *block, ArrayRef<mlir::Value> values, Region &region) {
  OpBuilder::InsertionGuard guard(tracer.builder);
  tracer.builder.setInsertionPointToEnd(block);
  scf::YieldOp::create(tracer.builder, loc, values);
  region.push_back(block);
}

/// A branch whose sides are not traced.
static void branchWithoutSides(Tracer &tracer, Loc loc, mlir::Value condition, const Outcome &outcome, size_t before) {
  SmallVector<mlir::Type> types;
  SmallVector<Tile *> changed;
  for (auto &[position, type, isUnsigned] : outcome.changed) {
    types.push_back(type);
    changed.push_back(&tracer.cellAt(position));
  }
  auto branch = scf::IfOp::create(tracer.builder, tracer.at(loc), types, condition, false, false);
  for (auto [tile, result, change] : llvm::zip(changed, branch.getResults(), outcome.changed)) {
    const auto number = static_cast<Type>(*tile::numberOf(getElementTypeOrSelf(change.type)));
    tracer.note(result, change.isUnsigned ? unsignedOf(number) : number);
    Tracer::rebind(*tile, result);
  }
  tracer.endBodies(changed, before);
}

void when(At condition, const std::function<void()> &then, const std::function<void()> &otherwise, Loc loc) {
  Verb verb("when", loc);
  Tracer &tracer = verb.tracer;
  mlir::Value chosen = verb.value(condition);
  if (chosen && (elementOf(chosen) != boolean || !shapeOf(chosen).empty())) {
    verb.expected() << "a boolean scalar as condition, but got " << describe(chosen);
    chosen = {};
  }
  if (!chosen)
    chosen = verb.constant({}, boolean, {});
  const size_t cellsBefore = tracer.cellCount();
  if (const Outcome *outcome = tracer.beginBodies(/*isLoop=*/false, loc))
    return branchWithoutSides(tracer, loc, chosen, *outcome, cellsBefore);
  DenseMap<Tile *, mlir::Value> afterThen, afterOtherwise;
  Frame thenFrame = traceSide(tracer, then, loc, afterThen);
  Frame otherwiseFrame = traceSide(tracer, otherwise, loc, afterOtherwise);
  SmallVector<mlir::Value> thenValues, otherwiseValues;
  SmallVector<mlir::Type> types;
  SmallVector<Changed> changed = changedCells(tracer, thenFrame, afterThen, afterOtherwise);
  for (const Changed &cell : changed) {
    thenValues.push_back(cell.then);
    otherwiseValues.push_back(cell.otherwise);
    types.push_back(cell.then.getType());
  }
  auto branch = scf::IfOp::create(tracer.builder, verb.location, types, chosen, false, false);
  endSide(tracer, verb.location, thenFrame.body, thenValues, branch.getThenRegion());
  if (!types.empty() || !otherwiseFrame.body->empty())
    endSide(tracer, verb.location, otherwiseFrame.body, otherwiseValues, branch.getElseRegion());
  else
    tracer.bury(otherwiseFrame.body);
  SmallVector<Tile *> tiles;
  for (auto [cell, result] : llvm::zip(changed, branch.getResults())) {
    tracer.noteLike(result, cell.then);
    Tracer::rebind(*cell.tile, result);
    tiles.push_back(cell.tile);
  }
  tracer.endBodies(tiles, cellsBefore);
}

} // namespace kiln
