// Reports failures of a check of a tile. If the loops found that some element fails, code after them searches the tile
// again, element by element.

#include "lowering/cpu/Nest.h"

#include "lowering/tile/Console.h"

using namespace mlir;

namespace kiln::lowering::cpu {

static Value isFalse(Evaluator &e, Value condition) {
  return e.make<arith::XOrIOp>(condition, e.make<arith::ConstantOp>(e.builder.getBoolAttr(true)));
}

static void tellFailures(Evaluator &e, tile::CheckOp check) {
  const auto shape = tile::shapeOf(check.getCondition().getType());
  Index element(shape.size());
  Value number = e.constantIndex(0);
  std::function<void(size_t)> visit = [&](size_t axis) {
    if (axis == shape.size()) {
      auto tell = [&] {
        Value wide = e.make<arith::IndexCastOp>(e.builder.getI64Type(), number);
        e.moveTo(e.depth());
        emitCheckFailed(e.builder, check, wide);
      };
      return e.branch(isFalse(e, e.at(check.getCondition(), element)), tell, nullptr);
    }
    e.loop(e.constantIndex(0), e.constantIndex(shape[axis]), 1, [&, before = number](Ix position) {
      element[axis] = e.keptHere(position);
      Value rows = e.make<arith::MulIOp>(before, e.constantIndex(shape[axis]));
      number = e.make<arith::AddIOp>(rows, element[axis].at);
      visit(axis + 1);
    });
  };
  visit(0);
}

void branchToFailures(Evaluator &e, tile::CheckOp check, Value holds) {
  e.branch(isFalse(e, holds), [&] { tellFailures(e, check); }, nullptr);
}

} // namespace kiln::lowering::cpu
