// `continue_if`, `break_if` and `return_if`: the code after them in their body, its *rest*, becomes a side of an
// scf.if, which ends with the body. The results of the branch are the tiles that the rest changed, and how the program
// left, for the enclosing bodies.
//
//     break_if(c);      %stays = xori %c, true
//     acc = acc + 1;      %acc2, %left = scf.if %stays { … scf.yield %acc1, false } else { scf.yield %acc, %c }
//   }                     // the end of the loop's body: no further iteration if %left is true

#include "dialect/dsl/Tracer.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kiln {

/// A hint how a tile keeps its type and shape. Empty if the cure is not known.
static std::string hintFor(mlir::Value before, mlir::Value now) {
  const Shape shape = shapeOf(now);
  if (shape == shapeOf(before))
    return "; use cast(), or begin with that type";
  if (!shapeOf(before).empty())
    return "";
  std::string extents;
  for (const int64_t extent : shape)
    extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  return std::string("; begin with that shape, such as zeros(") + nameOf(elementOf(now)) + ", {" + extents + "})";
}

bool checkChange(Tracer &tracer, const FrameCell &cell, mlir::Value now, const char *body) {
  if (now.getType() == cell.before.getType() && elementOf(now) == elementOf(cell.before))
    return true;
  auto diagnostic = mlir::emitError(now.getLoc());
  diagnostic << "a tile that a " << body << " changes must keep its type and shape " << describe(cell.before)
             << ", but got " << describe(now) << hintFor(cell.before, now);
  diagnostic.attachNote(tracer.at(cell.declared)) << "declared here";
  tracer.fail();
  return false;
}

void reportDestroyed(Tracer &tracer, const Frame &frame, const char *body, Loc loc) {
  for (Loc declared : frame.destroyed) {
    auto diagnostic = tracer.error(loc);
    diagnostic << "a tile declared before a " << body << " is destroyed inside it";
    diagnostic.attachNote(tracer.at(declared)) << "declared here";
  }
}

// --- Rests -----------------------------------------------------------------------------------------------------------

/// Whether the body `around` passes on that it was left in this way: a branch does, and a loop unless it was a
/// `continue`.
static bool isHandedOn(Body around, Leave kind) {
  return around == Body::branch || (around == Body::loop && kind != Leave::iteration);
}

/// Whether the body was left in any way.
static mlir::Value anyLeave(Tracer &tracer, Location loc, const Leaves &leaves) {
  mlir::Value left;
  for (Leave kind : everyLeave)
    if (mlir::Value flag = leaves[kind])
      left = left ? arith::OrIOp::create(tracer.builder, loc, left, flag).getResult() : flag;
  return left;
}

void Tracer::leave(const Leaves &leaves, Loc loc) {
  checkNesting(loc);
  mlir::Value left = anyLeave(*this, at(loc), leaves);
  open(Body::rest, loc);
  innermost().left = left;
  innermost().leaves = leaves;
}

mlir::Value zeroOf(OpBuilder &builder, mlir::Value like) {
  return arith::ConstantOp::create(builder, like.getLoc(), cast<TypedAttr>(builder.getZeroAttr(like.getType())));
}

/// The tiles changed by the innermost body, a rest, that outlive the enclosing body `around`.
static SmallVector<FrameCell> changedCells(Tracer &tracer, Body around) {
  SmallVector<FrameCell> changed;
  for (FrameCell &cell : tracer.innermost().cells) {
    mlir::Value now = cell.tile && Tracer::isChanged(cell) ? Tracer::held(*cell.tile) : mlir::Value();
    if (!now || !tracer.isOpen(now.getParentBlock()))
      continue; // a later read reports it
    if (!cell.before ? around == Body::branch
                     : checkChange(tracer, cell, now, around == Body::branch ? "branch" : "loop body"))
      changed.push_back(cell);
    else if (cell.before)
      Tracer::restore(cell);
  }
  return changed;
}

/// Closes the innermost body, a rest; `inner` records how the program left it.
Leaves Tracer::closeRest(const Leaves &inner, Body around) {
  const bool isProgram = around == Body::rest; // no tile outlives it
  SmallVector<FrameCell> changed;
  if (!isProgram)
    changed = changedCells(*this, around);
  const Frame rest = close();
  const Location loc = at(rest.loc);
  SmallVector<mlir::Value> ran, skipped;
  for (const FrameCell &cell : changed) {
    ran.push_back(held(*cell.tile));
    // A tile first set in a rest has an arbitrary value if the program has left, because it will not be read.
    skipped.push_back(cell.before ? cell.before : zeroOf(builder, ran.back()));
  }
  Leaves leaves;
  leaves.always = inner.always || matchPattern(rest.left, m_One());
  SmallVector<Leave> kinds = llvm::filter_to_vector(everyLeave, [&](Leave kind) {
    return !isProgram && isHandedOn(around, kind) && (inner[kind] || rest.leaves[kind]);
  });
  if (rest.body->empty() && changed.empty()) { // the last statement of its body
    bury(rest.body);
    for (Leave kind : kinds)
      leaves[kind] = rest.leaves[kind];
    return leaves;
  }
  OpBuilder::InsertionGuard guard(builder);
  const auto flag = [&](mlir::Value known) -> mlir::Value {
    return known ? known : arith::ConstantOp::create(builder, loc, builder.getBoolAttr(false)).getResult();
  };
  mlir::Value stays = arith::XOrIOp::create(builder, loc, rest.left,
                                            arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true)));
  for (Leave kind : kinds)
    skipped.push_back(flag(rest.leaves[kind]));
  SmallVector<mlir::Type> types = llvm::map_to_vector(skipped, [](mlir::Value value) { return value.getType(); });
  auto branch = scf::IfOp::create(builder, loc, types, stays, false, false);
  builder.setInsertionPointToEnd(rest.body);
  for (Leave kind : kinds)
    ran.push_back(flag(inner[kind]));
  scf::YieldOp::create(builder, loc, ran);
  branch.getThenRegion().push_back(rest.body);
  if (!types.empty()) {
    builder.createBlock(&branch.getElseRegion());
    scf::YieldOp::create(builder, loc, skipped);
  }
  for (const auto &[cell, result] : llvm::zip(changed, branch.getResults())) {
    noteLike(result, held(*cell.tile));
    rebind(*cell.tile, result);
  }
  for (const auto &[kind, result] : llvm::zip(kinds, branch.getResults().drop_front(changed.size())))
    leaves[kind] = result;
  return leaves;
}

Leaves Tracer::closeRests(size_t open) {
  const Body around = open == 0 ? Body::rest : frames[open - 1].kind;
  Leaves leaves;
  while (frames.size() > open)
    leaves = closeRest(leaves, around);
  return leaves;
}

// --- Functions ------------------------------------------------------------------------------------------------------

const char *Tracer::whyNoLeave(Leave kind) const {
  for (const Frame &frame : llvm::reverse(frames)) {
    if (frame.kind == Body::condition)
      return "in the condition of a loop";
    if (frame.kind == Body::function)
      return "in the function of a scan or reduction";
    if (frame.kind == Body::loop && kind != Leave::program)
      return "";
  }
  return kind == Leave::program ? "" : "outside a traced loop, 'range' or 'repeat_while'";
}

static void leaveWhen(const char *name, Leave kind, const At &condition) {
  Call call(name, condition.loc);
  mlir::Value holds = call.condition(condition, "condition");
  if (const StringRef where = call.tracer.whyNoLeave(kind); !where.empty()) {
    call.tracer.error(call.loc) << "'" << name << "' is not supported " << where;
    return;
  }
  Leaves leaves;
  leaves[kind] = holds;
  call.tracer.leave(leaves, condition.loc);
}

void continue_if(At condition) { leaveWhen("continue_if", Leave::iteration, condition); }
void break_if(At condition) { leaveWhen("break_if", Leave::loop, condition); }
void return_if(At condition) { leaveWhen("return_if", Leave::program, condition); }

} // namespace kiln
