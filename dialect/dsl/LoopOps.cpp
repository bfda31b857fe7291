// The operations of loops: scf.for and scf.while; their results are the cells that the body changed.
//
// A range that may be left early is a while, too, which carries its condition and its position. No position past the
// end is computed: there is another iteration if more than a step is left.
//
//     scf.while (%more = %begin < %end, %i = %begin, …) { scf.condition(%more) %i, … }
//     do { …  %more = not %left and %end - %i > %step, unsigned   scf.yield %more, %i + %step, … }

#include "dialect/dsl/LoopState.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {

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

SmallVector<FrameCell> carriedCells(Tracer &tracer, Frame &frame, Loc loc) {
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

void buildLoop(const Loop::State &state, Frame &frame, ArrayRef<FrameCell> carried, const Leaves &leaves) {
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

void buildWithoutBody(const Loop::State &state, const Outcome &outcome) {
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

} // namespace kiln
