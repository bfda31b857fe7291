// `if_`: the sides become those of an scf.if; its results are the cells that they changed.

#include "dialect/dsl/Tracer.h"

#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln {

namespace {
/// A traced side.
struct Side {
  Frame frame;
  DenseMap<Tile *, mlir::Value> after; // final values of the cells that it changed
  Leaves leaves;
};
} // namespace

/// Traces one side, and then restores the cells.
static Side traceSide(Tracer &tracer, const std::function<void()> &side, Loc loc) {
  const size_t depth = tracer.openTraced(Body::branch, loc, [&] {
    if (side)
      side();
  });
  Side traced;
  traced.leaves = tracer.closeRests(depth + 1);
  for (FrameCell &cell : tracer.innermost().cells) {
    if (!cell.tile)
      continue;
    mlir::Value now = Tracer::held(*cell.tile);
    if (now && Tracer::isChanged(cell) && tracer.read(*cell.tile, loc))
      traced.after[cell.tile] = now;
  }
  traced.frame = tracer.close();
  reportDestroyed(tracer, traced.frame, "branch body", loc);
  for (FrameCell &cell : traced.frame.cells)
    if (cell.tile)
      Tracer::restore(cell);
  return traced;
}

/// A cell changed by a branch.
struct Changed {
  Tile *tile;
  mlir::Value then, otherwise;
};

/// The value that a side yields for a tile that it has not set: zero if the side always leaves, so that nothing reads
/// it, otherwise none.
static mlir::Value unsetIn(Tracer &tracer, const Side &side, mlir::Value other) {
  if (!side.leaves.always)
    return {};
  OpBuilder::InsertionGuard guard(tracer.builder);
  tracer.builder.setInsertionPointToEnd(side.frame.body);
  return zeroOf(tracer.builder, other);
}

/// The cells that the sides changed. A previously unset one is set afterwards only if all sides that reach the end set
/// it.
static SmallVector<Changed> changedCells(Tracer &tracer, const Side &then, const Side &otherwise) {
  SmallVector<Changed> changed;
  for (const FrameCell &cell : then.frame.cells) {
    mlir::Value a = cell.tile ? then.after.lookup(cell.tile) : mlir::Value(),
                b = cell.tile ? otherwise.after.lookup(cell.tile) : mlir::Value();
    if (!a && !b)
      continue;
    FrameCell expected = cell;
    if (!cell.before) {
      a = a ? a : unsetIn(tracer, then, b);
      b = b ? b : unsetIn(tracer, otherwise, a);
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

/// Assigns the branch's first results, of these types, to the changed cells. The other results record how the program
/// left the branch.
static void endBranch(Tracer &tracer, Loc loc, scf::IfOp branch, ArrayRef<Tile *> changed,
                      ArrayRef<kiln::Type> elements, ArrayRef<Leave> kinds, size_t before) {
  for (auto [tile, result, element] : llvm::zip(changed, branch.getResults(), elements)) {
    tracer.note(result, element);
    Tracer::rebind(*tile, result);
  }
  Leaves leaves;
  for (auto [kind, result] : llvm::zip(kinds, branch.getResults().drop_front(changed.size())))
    leaves[kind] = result;
  tracer.endBodies(changed, before, leaves, loc);
}

/// A branch whose sides are not traced.
static void branchWithoutSides(Tracer &tracer, Loc loc, mlir::Value condition, const Outcome &outcome, size_t before) {
  SmallVector<mlir::Type> types;
  SmallVector<Tile *> changed;
  SmallVector<kiln::Type> elements;
  for (auto &[position, type, element] : outcome.changed) {
    types.push_back(type);
    elements.push_back(element);
    changed.push_back(&tracer.cellAt(position));
  }
  const auto kinds =
      llvm::filter_to_vector(everyLeave, [&](Leave kind) { return outcome.leaves[static_cast<size_t>(kind)]; });
  types.append(kinds.size(), tracer.builder.getI1Type());
  endBranch(tracer, loc, scf::IfOp::create(tracer.builder, tracer.at(loc), types, condition, false, false), changed,
            elements, kinds, before);
}

/// Ends a side's block; yields its values and how it was left.
static void endSide(Tracer &tracer, Location loc, const Side &side, SmallVector<mlir::Value> values,
                    ArrayRef<Leave> kinds, Region &region) {
  OpBuilder::InsertionGuard guard(tracer.builder);
  tracer.builder.setInsertionPointToEnd(side.frame.body);
  for (Leave kind : kinds)
    values.push_back(
        side.leaves[kind]
            ? side.leaves[kind]
            : arith::ConstantOp::create(tracer.builder, loc, tracer.builder.getBoolAttr(false)).getResult());
  scf::YieldOp::create(tracer.builder, loc, values);
  region.push_back(side.frame.body);
}

void if_(At condition, const std::function<void()> &then, const std::function<void()> &otherwise, Loc loc) {
  Call call("if_", loc);
  Tracer &tracer = call.tracer;
  mlir::Value chosen = call.condition(condition, "condition");
  const size_t cellsBefore = tracer.cellCount();
  if (const Outcome *outcome = tracer.beginBodies(/*isLoop=*/false, loc))
    return branchWithoutSides(tracer, loc, chosen, *outcome, cellsBefore);
  const Side first = traceSide(tracer, then, loc), second = traceSide(tracer, otherwise, loc);
  SmallVector<mlir::Value> thenValues, otherwiseValues;
  SmallVector<mlir::Type> types;
  SmallVector<Tile *> tiles;
  SmallVector<kiln::Type> elements;
  for (const Changed &cell : changedCells(tracer, first, second)) {
    tiles.push_back(cell.tile);
    elements.push_back(elementOf(cell.then));
    thenValues.push_back(cell.then);
    otherwiseValues.push_back(cell.otherwise);
    types.push_back(cell.then.getType());
  }
  const auto kinds =
      llvm::filter_to_vector(everyLeave, [&](Leave kind) { return first.leaves[kind] || second.leaves[kind]; });
  types.append(kinds.size(), tracer.builder.getI1Type());
  auto branch = scf::IfOp::create(tracer.builder, call.location, types, chosen, false, false);
  endSide(tracer, call.location, first, thenValues, kinds, branch.getThenRegion());
  if (!types.empty() || !second.frame.body->empty())
    endSide(tracer, call.location, second, otherwiseValues, kinds, branch.getElseRegion());
  else
    tracer.bury(second.frame.body);
  endBranch(tracer, loc, branch, tiles, elements, kinds, cellsBefore);
}

} // namespace kiln
