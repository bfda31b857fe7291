// `range` and `repeat_while`: bodies become scf.for and scf.while, with the cells that a body changed as their results.
//
// A range that the program may leave is a while, too, which carries whether it goes on and its position. No position is
// made that lies past the end: another round comes where more than a step is left.
//
//     scf.while (%more = %begin < %end, %i = %begin, …) { scf.condition(%more) %i, … }
//     do { …  %more = not %left and %end - %i > %step, unsigned   scf.yield %more, %i + %step, … }

#include "dialect/dsl/Tracer.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <exception>

using namespace mlir;

namespace kiln {

/// A traced loop between `range` or `repeat_while` and the end of its range-for.
struct Loop::State {
  Tracer &tracer;
  Loc loc;
  mlir::Value begin, end, step;    // of a range
  std::function<Tile()> condition; // else
  Hints hints;
  Block *outside = nullptr;   // where the loop will stand
  Block *test = nullptr;      // what the condition has become, with the arguments of a body
  mlir::Value holds = {};     // its value there
  size_t depth = 0;           // of the body among the open ones
  mlir::Value induction = {}; // set when the body has been opened
  int left = 0;               // how often the body is still to be traced
  int exceptions = 0;         // in flight when the loop began: unwinding is no mistake of the loop
  size_t cellsBefore = 0;     // how many cells there were when the loop began
  bool isOpen = false, isDone = false;

  bool isRange() const { return static_cast<bool>(step); }
};

static mlir::Value integer(OpBuilder &builder, Location loc, int64_t number) {
  return arith::ConstantIntOp::create(builder, loc, number, 64);
}

static mlir::Value truth(OpBuilder &builder, Location loc, bool value) {
  return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
}

/// At the end of a block that need not stand anywhere yet.
static OpBuilder atEnd(Tracer &tracer, Block &block) {
  OpBuilder builder(tracer.builder.getContext());
  builder.setInsertionPointToEnd(&block);
  return builder;
}

// --- Closing a loop --------------------------------------------------------------------------------------------------

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

/// Takes from a loop's block the arguments of cells that are not carried, which become the value from outside.
static void prune(Tracer &tracer, Block &block, Frame &frame, ArrayRef<FrameCell> carried) {
  DenseMap<mlir::Value, mlir::Value> replaced;
  llvm::BitVector pruned(block.getNumArguments(), true);
  pruned.reset(0);
  for (const FrameCell &cell : carried)
    pruned.reset(cell.argument.getArgNumber());
  for (FrameCell &cell : frame.cells) {
    if (!cell.argument || cell.argument.getArgNumber() >= pruned.size() || !pruned.test(cell.argument.getArgNumber()))
      continue;
    mlir::Value argument = block.getArgument(cell.argument.getArgNumber());
    argument.replaceAllUsesWith(cell.before);
    replaced[argument] = cell.before;
  }
  tracer.replaceInCells(replaced);
  for (unsigned number : pruned.set_bits()) // another value may lie there next
    tracer.note(block.getArgument(number), i64);
  block.eraseArguments(pruned);
}

/// The scf.for of a range, without its body.
static scf::ForOp makeFor(const Loop::State &state, ValueRange inits) {
  OpBuilder &builder = state.tracer.builder;
  auto loop = scf::ForOp::create(builder, state.tracer.at(state.loc), state.begin, state.end, state.step, inits);
  loop.getRegion().front().erase();
  const int stages = state.hints.pipeline ? state.hints.stages : 1;
  if (state.hints.unroll != 1)
    loop->setAttr("tile.unroll", builder.getI64IntegerAttr(state.hints.unroll));
  if (stages != 0 && state.tracer.readsStages())
    loop->setAttr("tile.stages", builder.getI64IntegerAttr(stages));
  return loop;
}

namespace {
/// What a while carries besides tiles. In front of them come whether it goes on, of a range, or whether it was left, of
/// another that may be; and its position. Behind them comes whether the program has ended. The
/// results have all but the first.
struct Form {
  bool isLeft, ends;
};
} // namespace

/// The scf.while of a loop, without its regions.
static scf::WhileOp makeWhile(const Loop::State &state, ValueRange carried, Form form) {
  OpBuilder &builder = state.tracer.builder;
  const Location loc = state.tracer.at(state.loc);
  SmallVector<mlir::Value> inits;
  if (state.isRange())
    inits.push_back(arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, state.begin, state.end));
  else if (form.isLeft)
    inits.push_back(truth(builder, loc, false));
  inits.push_back(state.isRange() ? state.begin : integer(builder, loc, 0));
  llvm::append_range(inits, carried);
  if (form.ends)
    inits.push_back(truth(builder, loc, false));
  const auto types = llvm::map_to_vector(inits, [](mlir::Value value) { return value.getType(); });
  return scf::WhileOp::create(builder, loc, ArrayRef(types).drop_front(form.isLeft), inits);
}

/// The region of a while that says whether it goes on.
static void buildTest(const Loop::State &state, scf::WhileOp loop, bool isLeft) {
  OpBuilder builder(loop.getContext());
  const Location loc = loop.getLoc();
  const SmallVector<mlir::Type> types(loop.getInits().getTypes());
  Block *before = builder.createBlock(&loop.getBefore(), {}, types, SmallVector<Location>(types.size(), loc));
  ValueRange forwarded = before->getArguments();
  mlir::Value goesOn = state.holds;
  Block *around = before;
  if (isLeft) {
    mlir::Value first = forwarded.front();
    forwarded = forwarded.drop_front();
    goesOn = first;
    if (state.test) {
      auto branch = scf::IfOp::create(builder, loc, builder.getI1Type(), first, /*addThenBlock=*/true,
                                      /*addElseBlock=*/true);
      goesOn = branch.getResult(0);
      around = &branch.getElseRegion().front();
      auto then = branch.getThenBodyBuilder();
      scf::YieldOp::create(then, loc, truth(then, loc, false));
    }
  }
  if (state.test) {
    for (auto [argument, value] : llvm::zip(state.test->getArguments(), forwarded))
      argument.replaceAllUsesWith(value);
    around->getOperations().splice(around->begin(), state.test->getOperations());
    if (around != before) {
      auto otherwise = OpBuilder::atBlockEnd(around);
      scf::YieldOp::create(otherwise, loc, state.holds);
    }
  }
  builder.setInsertionPointToEnd(before);
  scf::ConditionOp::create(builder, loc, goesOn, forwarded);
}

/// Gives the cells the results of a loop.
static void hold(Tracer &tracer, ArrayRef<Tile *> changed, ResultRange results) {
  for (auto [tile, result] : llvm::zip(changed, results)) {
    tracer.noteLike(result, Tracer::held(*tile));
    Tracer::rebind(*tile, result);
  }
}

/// Ends a while: the cells hold what it carried, and what follows depends on whether the program has ended.
static void endWhile(const Loop::State &state, ArrayRef<Tile *> changed, scf::WhileOp loop, Form form) {
  hold(state.tracer, changed, loop.getResults().drop_front());
  Leaves leaves;
  if (form.ends)
    leaves[Leave::program] = loop.getResults().back();
  Outcome &outcome = state.tracer.endBodies(changed, state.cellsBefore, leaves, state.loc);
  outcome.isLeft = form.isLeft;
}

static void endFor(const Loop::State &state, ArrayRef<Tile *> changed, scf::ForOp loop) {
  hold(state.tracer, changed, loop.getResults());
  state.tracer.endBodies(changed, state.cellsBefore, {}, state.loc);
}

/// Ends the body of a while, at whose end the program has left it as `leaves` says.
static void endRound(const Loop::State &state, Block &body, ArrayRef<mlir::Value> carried, Form form,
                     const Leaves &leaves) {
  const Location loc = state.tracer.at(state.loc);
  OpBuilder builder = atEnd(state.tracer, body);
  const mlir::Value broken = leaves[Leave::loop], ended = leaves[Leave::program];
  mlir::Value position = body.getArgument(0), left = broken ? broken : ended;
  if (broken && ended)
    left = arith::OrIOp::create(builder, loc, broken, ended);
  SmallVector<mlir::Value> yields;
  if (state.isRange()) {
    mlir::Value rest = arith::SubIOp::create(builder, loc, state.end, position);
    mlir::Value more = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, rest, state.step);
    mlir::Value stays = arith::XOrIOp::create(builder, loc, left, truth(builder, loc, true));
    yields.push_back(arith::AndIOp::create(builder, loc, more, stays));
    yields.push_back(arith::AddIOp::create(builder, loc, position, state.step));
  } else {
    if (form.isLeft)
      yields.push_back(left);
    yields.push_back(arith::AddIOp::create(builder, loc, position, integer(builder, loc, 1)));
  }
  llvm::append_range(yields, carried);
  if (form.ends)
    yields.push_back(ended);
  scf::YieldOp::create(builder, loc, yields);
}

/// Puts the body into a new loop.
static void buildLoop(const Loop::State &state, Frame &frame, ArrayRef<FrameCell> carried, const Leaves &leaves) {
  Tracer &tracer = state.tracer;
  SmallVector<mlir::Value> inits, yields;
  SmallVector<Tile *> changed;
  for (const FrameCell &cell : carried) {
    inits.push_back(cell.before);
    yields.push_back(Tracer::held(*cell.tile));
    changed.push_back(cell.tile);
  }
  if (state.isRange() && leaves.areNone()) {
    OpBuilder body = atEnd(tracer, *frame.body);
    scf::YieldOp::create(body, tracer.at(state.loc), yields);
    auto loop = makeFor(state, inits);
    loop.getRegion().push_back(frame.body);
    prune(tracer, *frame.body, frame, carried);
    return endFor(state, changed, loop);
  }
  if (state.hints.unroll != 1 || state.hints.stages != 0 || !state.hints.pipeline)
    tracer.error(state.loc) << "'range' expected no hints for a loop that may be left before its end";
  const Form form{.isLeft = !leaves.areNone(), .ends = static_cast<bool>(leaves[Leave::program])};
  scf::WhileOp loop = makeWhile(state, inits, form);
  endRound(state, *frame.body, yields, form, leaves);
  if (state.test)
    prune(tracer, *state.test, frame, carried);
  buildTest(state, loop, form.isLeft);
  loop.getAfter().push_back(frame.body);
  prune(tracer, *frame.body, frame, carried);
  if (form.ends)
    frame.body->addArgument(tracer.builder.getI1Type(), loop.getLoc());
  endWhile(state, changed, loop, form);
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
  const Form form{.isLeft = outcome.isLeft, .ends = outcome.leaves[static_cast<size_t>(Leave::program)]};
  if (state.isRange() && !form.isLeft)
    endFor(state, changed, makeFor(state, inits));
  else
    endWhile(state, changed, makeWhile(state, inits, form), form);
}

// --- Tracing a loop --------------------------------------------------------------------------------------------------

static void openBody(Loop::State &state) {
  state.depth = state.tracer.open(Body::loop, state.loc);
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
  const Leaves leaves = tracer.closeRests(state.depth + 1);
  SmallVector<FrameCell> carried = carriedCells(tracer, tracer.innermost(), state.loc);
  Frame frame = tracer.close();
  reportDestroyed(tracer, frame, "loop body", state.loc);
  buildLoop(state, frame, carried, leaves);
}

/// Reports unless the cells hold what they held before the condition, which is open, and has them hold it again.
static void checkCells(Verb &verb) {
  for (FrameCell &cell : verb.tracer.innermost().cells) {
    if (!cell.tile)
      continue;
    if (cell.argument ? Tracer::held(*cell.tile) != cell.argument : Tracer::isChanged(cell)) {
      auto error = verb.expected();
      error << "a condition that changes no tile";
      error.attachNote(verb.tracer.at(cell.declared)) << "declared here";
    }
    Tracer::restore(cell);
  }
}

/// Traces the condition, with arguments in place of the cells.
static void traceCondition(Loop::State &state) {
  Verb verb("repeat_while", state.loc);
  Tracer &tracer = state.tracer;
  for (int left = tracer.bodyTraces();; --left) {
    const size_t depth = tracer.open(Body::condition, state.loc);
    tracer.rehearsals += left > 1;
    try {
      state.holds = verb.truth(At(state.condition(), state.loc), "condition");
    } catch (...) {
      tracer.rehearsals -= left > 1;
      tracer.discard(depth);
      tracer.noteThrown(state.loc);
      tracer.abandonBodies();
      throw;
    }
    tracer.rehearsals -= left > 1;
    if (left > 1) {
      tracer.discard(depth);
      continue;
    }
    checkCells(verb);
    const Frame frame = tracer.close();
    reportDestroyed(tracer, frame, "condition", state.loc);
    state.test = frame.body;
    return;
  }
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

/// The largest number of rounds that may become one, and of stages.
static constexpr int mostUnrolled = 64, mostStages = 64;

static Hints checkHints(Verb &verb, Hints hints) {
  if (hints.unroll < 1 || hints.unroll > mostUnrolled)
    verb.expected() << "to be unrolled from 1 to " << mostUnrolled << " times, but got " << hints.unroll;
  else if (hints.stages < 0 || hints.stages > mostStages)
    verb.expected() << "from 0 to " << mostStages << " stages, but got " << hints.stages;
  else if (hints.stages > 1 && !hints.pipeline)
    verb.expected() << "no stages without a pipeline, but got " << hints.stages;
  else
    return hints;
  return {};
}

Loop range(At begin, At end, At step, Hints hints, Loc loc) {
  Verb verb("range", loc);
  auto state = std::make_unique<Loop::State>(Loop::State{.tracer = verb.tracer,
                                                         .loc = loc,
                                                         .begin = verb.index(begin, "begin"),
                                                         .end = verb.index(end, "end"),
                                                         .step = verb.index(step, "step"),
                                                         .condition = {},
                                                         .hints = checkHints(verb, hints),
                                                         .outside = verb.tracer.builder.getInsertionBlock()});
  // After a mistake in the bounds the body is still traced, for its own mistakes.
  if (!state->begin)
    state->begin = verb.constant({}, i64, {});
  if (!state->end)
    state->end = verb.constant({}, i64, {});
  state->step = checkStep(verb, state->step);
  state->exceptions = std::uncaught_exceptions();
  return Loop(std::move(state));
}

Loop range(At begin, At end, At step, Loc loc) { return range(begin, end, step, Hints(), loc); }

Loop range(At end, Loc loc) { return range(At(0, end.loc), end, At(1, end.loc), loc); }

Loop repeat_while(const std::function<Tile()> &condition, Loc loc) {
  Verb verb("repeat_while", loc);
  auto state = std::make_unique<Loop::State>(Loop::State{.tracer = verb.tracer,
                                                         .loc = loc,
                                                         .begin = {},
                                                         .end = {},
                                                         .step = {},
                                                         .condition = condition,
                                                         .hints = {},
                                                         .outside = verb.tracer.builder.getInsertionBlock()});
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
                                       "break or return; use break_when() or return_when()";
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

Tile Loop::Iterator::operator*() const { return loop->state->tracer.make(loop->state->induction, loop->state->loc); }

Loop::Iterator &Loop::Iterator::operator++() {
  closeBody(*loop->state);
  return *this;
}

bool Loop::Iterator::operator!=(const Iterator &) const { return loop && loop->state->isOpen; }

} // namespace kiln
