// Nests that transpose tiles into scratch memory. The source is read along its rows, if it is inside its views, and
// square blocks of vectors are transposed in registers. Lane by lane, each element would take a load and a shuffle; in
// blocks of 16 rows it takes 1/16 of a load and 1/4 of a shuffle.

#include "lowering/cpu/DotOperands.h"
#include "lowering/cpu/Nest.h"

using namespace mlir;

namespace kiln::lowering::cpu {

void Nest::transposeBlocks() {
  const auto order = cast<tile::TransposeOp>(roots.front().op).getPermutation();
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  const int64_t across = llvm::find(order, last) - order.begin(); // the dimension of the source's rows
  outerInOrOver(across, {}, [&](Index &position, int64_t unroll, ValueRange) -> SmallVector<Value> {
    if (unroll > 1)
      vectorsAlong(last, [&](Ix row) {
        vectorsAlong(across, [&](Ix column) { transposeBlock(position, across, row, column); });
      });
    else // cut by an edge
      loop(shape[across], 1, {}, [&](Ix row, ValueRange) -> SmallVector<Value> {
        position[across] = row;
        vectorsAlong(last, [&](Ix columns) {
          position[last] = columns;
          States none;
          all(position, none);
        });
        return {};
      });
    return {};
  });
}

void Nest::vectorsAlong(int64_t axis, function_ref<void(Ix)> body) {
  const int64_t lanes = e.machine.lanes(), whole = shape[axis] / lanes * lanes;
  if (whole)
    loop(whole, lanes, {}, [&](Ix base, ValueRange) -> SmallVector<Value> {
      body(lanesAt(base.at, 0, lanes));
      return {};
    });
  if (shape[axis] > whole)
    body(lanesAt(e.constantIndex(whole), 0, shape[axis] - whole));
}

void Nest::transposeBlock(Index index, int64_t across, const Ix &row, const Ix &column) {
  const Root &root = roots.front();
  const auto at = [&](const Ix &first, int64_t lane) {
    Value position = e.make<arith::AddIOp>(first.at, e.constantIndex(lane));
    return Ix{position, std::max(e.depthOf(position), outermost)};
  };
  index[across] = column;
  SmallVector<Value> block;
  for (int64_t lane = 0; lane < row.valid; ++lane) {
    index.back() = at(row, lane);
    block.push_back(e.vectorAt(root.value, index));
  }
  Value zeros = e.asVector(
      e.make<arith::ConstantOp>(cast<TypedAttr>(e.builder.getZeroAttr(getElementTypeOrSelf(root.value.getType())))));
  block.resize(e.machine.lanes(), zeros);
  block = transposed(e, std::move(block));
  index.back() = row;
  for (int64_t lane = 0; lane < column.valid; ++lane) {
    index[across] = at(column, lane);
    e.place(block[lane], root.value, root.buffer, index);
  }
}

} // namespace kiln::lowering::cpu
