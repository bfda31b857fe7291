// Traced loops: the bodies of `range` and `repeat_while` are traced and become scf.for and scf.while, whose results are
// the cells that the body changed.
//
// A range that may be left early is a while, too, which carries its condition and its position. No position past the
// end is computed: there is another iteration if more than a step is left.
//
//     scf.while (%more = %begin < %end, %i = %begin, …) { scf.condition(%more) %i, … }
//     do { …  %more = not %left and %end - %i > %step, unsigned   scf.yield %more, %i + %step, … }

#include "dialect/dsl/Tracer.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <exception>

using namespace mlir;

namespace kiln {

/// A traced loop, from `range` or `repeat_while` to the end of its range-for.
struct Loop::State {
  Tracer &tracer;
  Loc loc;
  mlir::Value begin, end, step;    // of range(), counted up
  mlir::Value flip = {};           // of a range that may count down: 0, or −1 if it does (complemented)
  std::function<Tile()> condition; // of repeat_while()
  Hints hints;
  mlir::Block *outside = nullptr; // the block of the finished loop
  mlir::Block *test = nullptr;    // the traced condition, with the arguments of a body
  mlir::Value holds = {};         // the value of the condition there
  size_t depth = 0;               // of the body in the stack of open bodies
  mlir::Value induction = {};     // set once the body is open
  mlir::Value position = {};      // the counter that the body sees
  int left = 0;                   // how many traces of the body remain
  int exceptions = 0;             // in flight when the loop began; stack unwinding is not an error of the loop
  size_t cellsBefore = 0;         // number of cells when the loop began
  bool isOpen = false, isDone = false;

  bool isRange() const { return static_cast<bool>(step); }
};

// --- Operations ------------------------------------------------------------------------------------------------------

static mlir::Value integer(OpBuilder &builder, Location loc, int64_t number) {
  return arith::ConstantIntOp::create(builder, loc, number, 64);
}

static mlir::Value boolConstant(OpBuilder &builder, Location loc, bool value) {
  return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
}

/// Inserts at the end of a block, which may be detached.
static OpBuilder atEnd(Tracer &tracer, Block &block) {
  OpBuilder builder(tracer.builder.getContext());
  builder.setInsertionPointToEnd(&block);
  return builder;
}

/// The loop-carried cells: those of the loop's frame that the body changed.
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

/// Removes a loop block's arguments of cells that are not carried; they are replaced by the outer values.
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
  for (unsigned number : pruned.set_bits()) // the address may be reused by another value
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
/// The values that a while carries in addition to tiles. Before the tiles: whether it continues (a range) or was left
/// (another loop that may be left), and its position. After the tiles: whether the program has ended. The results are
/// all carried values except the first.
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
    inits.push_back(boolConstant(builder, loc, false));
  inits.push_back(state.isRange() ? state.begin : integer(builder, loc, 0));
  llvm::append_range(inits, carried);
  if (form.ends)
    inits.push_back(boolConstant(builder, loc, false));
  const auto types = llvm::map_to_vector(inits, [](mlir::Value value) { return value.getType(); });
  return scf::WhileOp::create(builder, loc, ArrayRef(types).drop_front(form.isLeft), inits);
}

/// The region of a while with its condition.
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
      scf::YieldOp::create(then, loc, boolConstant(then, loc, false));
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

/// Assigns the results of a loop to the cells.
static void hold(Tracer &tracer, ArrayRef<Tile *> changed, ResultRange results) {
  for (auto [tile, result] : llvm::zip(changed, results)) {
    tracer.noteLike(result, Tracer::held(*tile));
    Tracer::rebind(*tile, result);
  }
}

/// Ends a while: assigns the results to the cells. The code after it depends on whether the program has ended.
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

/// Ends the body of a while; `leaves` records how the program left the body.
static void endIteration(const Loop::State &state, Block &body, ArrayRef<mlir::Value> carried, Form form,
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
    mlir::Value stays = arith::XOrIOp::create(builder, loc, left, boolConstant(builder, loc, true));
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

/// Moves the body of a frame into a new loop that carries these cells. `leaves` says how the body may be left.
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
    tracer.error(state.loc)
        << "'range' does not support unroll, pipeline and stages for a loop with break_if() or return_if()";
  const Form form{.isLeft = !leaves.areNone(), .ends = static_cast<bool>(leaves[Leave::program])};
  scf::WhileOp loop = makeWhile(state, inits, form);
  endIteration(state, *frame.body, yields, form, leaves);
  if (state.test)
    prune(tracer, *state.test, frame, carried);
  buildTest(state, loop, form.isLeft);
  loop.getAfter().push_back(frame.body);
  prune(tracer, *frame.body, frame, carried);
  if (form.ends)
    frame.body->addArgument(tracer.builder.getI1Type(), loop.getLoc());
  endWhile(state, changed, loop, form);
}

/// Builds a loop with the given outcome whose body is not traced.
static void buildWithoutBody(const Loop::State &state, const Outcome &outcome) {
  Tracer &tracer = state.tracer;
  SmallVector<mlir::Value> inits;
  SmallVector<Tile *> changed;
  for (auto &[position, type, element] : outcome.changed) {
    changed.push_back(&tracer.cellAt(position));
    inits.push_back(Tracer::held(*changed.back()));
  }
  const Form form{.isLeft = outcome.isLeft, .ends = outcome.leaves[static_cast<size_t>(Leave::program)]};
  if (state.isRange() && !form.isLeft)
    endFor(state, changed, makeFor(state, inits));
  else
    endWhile(state, changed, makeWhile(state, inits, form), form);
}

// --- range and repeat_while ------------------------------------------------------------------------------------------

/// A range that counts down becomes a loop that counts up over complements. Position i becomes −1 − i, the complement
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
