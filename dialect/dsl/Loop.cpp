// `range` and `repeat_while`: their bodies are traced and become loops (LoopOps.cpp).

#include "dialect/dsl/LoopState.h"

#include <exception>

using namespace mlir;

namespace kiln {

/// A range that counts down becomes a loop that counts up over complements: position i becomes −1 − i, the complement
/// of its bits, which reverses the order of all 64-bit integers. Returns the complement if `flip` is −1, otherwise
/// `position`.
static mlir::Value complemented(const Loop::State &state, mlir::Value position) {
  if (!state.flip || !position)
    return position;
  OpBuilder &builder = state.tracer.builder;
  const Location loc = state.tracer.at(state.loc);
  if (matchPattern(state.flip, m_Constant()))
    return arith::SubIOp::create(builder, loc, state.flip, position);
  return arith::XOrIOp::create(builder, loc, position, state.flip);
}

static void openBody(Loop::State &state) {
  state.depth = state.tracer.open(Body::loop, state.loc);
  state.induction = state.tracer.builder.getInsertionBlock()->getArgument(0);
  state.position = complemented(state, state.induction);
  state.isOpen = true;
  state.tracer.rehearsals += state.left > 1;
}

static void closeBody(Loop::State &state) {
  Tracer &tracer = state.tracer;
  state.isOpen = false;
  if (state.left-- > 1) { // not the last trace
    tracer.rehearsals--;
    tracer.discard(state.depth);
    openBody(state);
    return;
  }
  const Leaves leaves = tracer.closeRests(state.depth + 1);
  SmallVector<FrameCell> carried = carriedCells(tracer, tracer.innermost(), state.loc);
  Frame frame = tracer.close();
  reportDestroyed(tracer, frame, "loop body", state.loc);
  buildLoop(state, frame, carried, leaves);
}

/// Reports if the open condition changed cells, and restores them.
static void checkCells(Call &call) {
  for (FrameCell &cell : call.tracer.innermost().cells) {
    if (!cell.tile)
      continue;
    if (cell.argument ? Tracer::held(*cell.tile) != cell.argument : Tracer::isChanged(cell)) {
      auto error = call.tracer.error(call.loc);
      error << "the condition of 'repeat_while' must not assign to a tile declared outside it";
      error.attachNote(call.tracer.at(cell.declared)) << "declared here";
    }
    Tracer::restore(cell);
  }
}

/// Traces the condition, with the region's arguments as cells.
static void traceCondition(Loop::State &state) {
  Call call("repeat_while", state.loc);
  Tracer &tracer = state.tracer;
  tracer.openTraced(Body::condition, state.loc,
                    [&] { state.holds = call.condition(At(state.condition(), state.loc), "condition"); });
  checkCells(call);
  const Frame frame = tracer.close();
  reportDestroyed(tracer, frame, "condition", state.loc);
  state.test = frame.body;
}

/// The magnitude of a step, at least 1. `flip` becomes −1 for a negative step and 0 for others; it stays null if the
/// step is a positive constant.
static mlir::Value checkStep(Call &call, mlir::Value step, mlir::Value &flip) {
  const auto number = [&](int64_t integer) {
    Literal literal;
    literal.integer = integer;
    return call.constant(literal, i64, {});
  };
  IntegerAttr constant;
  if (step && matchPattern(step, m_Constant(&constant))) {
    const int64_t known = constant.getInt();
    if (known == 0)
      call.expected() << "a step other than 0, but got 0";
    if (known < 0)
      flip = number(-1);
    return known > 0 ? step : number(known == 0 ? 1 : known == INT64_MIN ? INT64_MAX : -known);
  }
  if (!step)
    return number(1);
  flip = call.emit<arith::ShRSIOp>(step, number(63));
  const mlir::Value size = call.emit<arith::SubIOp>(call.emit<arith::XOrIOp>(step, flip), flip);
  return call.emit<arith::MaxSIOp>(call.emit<arith::MinUIOp>(size, number(INT64_MAX)), number(1));
}

/// The largest unroll factor, and the largest number of stages.
static constexpr int maxUnrolled = 64, maxStages = 64;

static Hints checkHints(Call &call, Hints hints) {
  if (hints.unroll < 1 || hints.unroll > maxUnrolled)
    call.expected() << "to be unrolled from 1 to " << maxUnrolled << " times, but got " << hints.unroll;
  else if (hints.stages < 0 || hints.stages > maxStages)
    call.expected() << "from 0 to " << maxStages << " stages, but got " << hints.stages;
  else if (hints.stages > 1 && !hints.pipeline)
    call.tracer.error(call.loc) << "'range' with stages = " << hints.stages << " requires pipeline = true";
  else
    return hints;
  return {};
}

Loop range(At begin, At end, At step, Hints hints, Loc loc) {
  Call call("range", loc);
  auto state = std::make_unique<Loop::State>(Loop::State{.tracer = call.tracer,
                                                         .loc = loc,
                                                         .begin = call.index(begin, "begin"),
                                                         .end = call.index(end, "end"),
                                                         .step = call.index(step, "step"),
                                                         .condition = {},
                                                         .hints = checkHints(call, hints),
                                                         .outside = call.tracer.builder.getInsertionBlock()});
  // After an error in the bounds the body is still traced, to report its own errors.
  if (!state->begin)
    state->begin = call.constant({}, i64, {});
  if (!state->end)
    state->end = call.constant({}, i64, {});
  state->step = checkStep(call, state->step, state->flip);
  state->begin = complemented(*state, state->begin);
  state->end = complemented(*state, state->end);
  state->exceptions = std::uncaught_exceptions();
  return Loop(std::move(state));
}

Loop range(At begin, At end, At step, Loc loc) { return range(begin, end, step, Hints(), loc); }

Loop range(At end, Loc loc) { return range(At(0, end.loc), end, At(1, end.loc), loc); }

Loop repeat_while(const std::function<Tile()> &condition, Loc loc) {
  Call call("repeat_while", loc);
  auto state = std::make_unique<Loop::State>(Loop::State{.tracer = call.tracer,
                                                         .loc = loc,
                                                         .begin = {},
                                                         .end = {},
                                                         .step = {},
                                                         .condition = condition,
                                                         .hints = {},
                                                         .outside = call.tracer.builder.getInsertionBlock()});
  state->exceptions = std::uncaught_exceptions();
  return Loop(std::move(state));
}

Loop::Loop(std::unique_ptr<State> state) : state(std::move(state)) {}

Loop::~Loop() {
  if (state->test)
    state->tracer.bury(state->test);
  if (!state->isOpen)
    return;
  if (std::uncaught_exceptions() <= state->exceptions)
    state->tracer.error(state->loc) << "expected the body of a traced loop to reach its end, but it was left by "
                                       "break or return; use break_if() or return_if()";
  else
    state->tracer.noteThrown(state->loc);
  state->tracer.abandonBodies();
  state->tracer.rehearsals -= state->left > 1;
  state->tracer.discard(state->depth);
}

Loop::Iterator Loop::begin() {
  Tracer &tracer = state->tracer;
  if (state->isDone || state->induction || state->outside != tracer.builder.getInsertionBlock()) {
    tracer.error(state->loc) << "expected a range to be looped over once, where it is written; write it in the 'for'";
    return end();
  }
  state->cellsBefore = tracer.cellCount();
  if (const Outcome *outcome = tracer.beginBodies(/*isLoop=*/true, state->loc)) {
    state->isDone = true;
    buildWithoutBody(*state, *outcome);
    return end();
  }
  if (!state->isRange())
    traceCondition(*state);
  state->left = tracer.bodyTraces();
  openBody(*state);
  return Iterator(this);
}

Tile Loop::Iterator::operator*() const { return loop->state->tracer.make(loop->state->position, loop->state->loc); }

Loop::Iterator &Loop::Iterator::operator++() {
  closeBody(*loop->state);
  return *this;
}

bool Loop::Iterator::operator!=(const Iterator &) const { return loop && loop->state->isOpen; }

} // namespace kiln
