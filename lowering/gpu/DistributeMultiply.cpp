// Products of warpgroups from shared memory (wgmma): descriptors, and accumulator registers.

#include "lowering/gpu/ThreadCode.h"

#include "dialect/simt/MatrixImage.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::MatrixImage;
using simt::TileLayout;

static constexpr int64_t rowsOfProduct = 64, kOfProduct = 16;

/// The descriptor of the matrix at `begin`, without the offset of a part.
static Value descriptorOf(ThreadCode &code, const MatrixImage &matrix, Value begin) {
  const Value piece = code.make<arith::ShRUIOp>(begin, code.i32(4));
  return code.make<arith::AddIOp>(code.make<arith::ExtUIOp>(code.builder.getI64Type(), piece),
                                  code.i64(static_cast<int64_t>(matrix.descriptor())));
}

/// The offset of the warpgroup's rows in the left matrix; null: 0.
static Value offsetOfGroup(ThreadCode &code, const TileLayout &sums, const MatrixImage &left) {
  simt::Vecs columns(simt::laneBits + 2, 0);
  for (const simt::Vec unit : sums.bases(simt::Hw::warp).drop_front(2))
    columns.push_back(static_cast<simt::Vec>(left.at(sums.shape().positionIn(0, unit), 0)));
  return code.imageOfThread({32, columns});
}

/// The accumulator's registers for the 64 rows from `row` on, in the instruction's order.
static Indices registersOf(const TileLayout &sums, int64_t row) {
  Indices indices;
  for (int64_t column = 0; column < sums.shape()[1].size; column += 8)
    for (const int64_t below : {0, 8})
      for (const int64_t beside : {0, 1})
        indices.push_back(*sums.storedAt({row + below, column + beside}));
  return indices;
}

void distributeMultiply(ThreadCode &code, simt::MultiplyOp op) {
  const TileLayout layout = simt::layoutOf(op.getAcc()).getLayout();
  const int64_t N = layout.shape()[1].size;
  const MatrixImage left = *matrixIn(op.getLeftImage(), op.getLeftTurned() ? 1 : 0, rowsOfProduct),
                    right = *matrixIn(op.getRightImage(), op.getRightTurned() ? 0 : 1, N);
  const int64_t K = op.getLeftImage().getShape()[1 - left.outer];
  const auto beginOf = [&](Value buffer, Value at) { return code.add(code.held(buffer), code.held(at)); };
  const Value a =
      descriptorOf(code, left, code.add(beginOf(op.getLeft(), op.getLeftAt()), offsetOfGroup(code, layout, left)));
  const Value b = descriptorOf(code, right, beginOf(op.getRight(), op.getRightAt()));
  const auto part = [&](Value matrix, int64_t byte) {
    return byte ? code.make<arith::AddIOp>(matrix, code.i64(byte / 16)) : matrix;
  };

  const Value before = code.held(op.getAcc());
  const Value fenced = code.make<simt::WgmmaFenceOp>(before.getType(), before);
  SmallVector<std::pair<int64_t, Value>> blocks; // by first row
  for (int64_t row = 0; row < layout.shape()[0].size; row += rowsOfProduct)
    if (layout.storedAt({row, 0}))
      blocks.emplace_back(row, code.pick(fenced, registersOf(layout, row)));
  const Type element = op.getLeftImage().getElement();
  for (int64_t k = 0; k < K; k += kOfProduct)
    for (auto &[row, sums] : blocks)
      sums = simt::WgmmaOp::create(code.builder, code.loc, sums.getType(), element, part(a, left.at(row, k)),
                                   left.isTurned, part(b, right.at(0, k)), right.isTurned, sums);
  simt::WgmmaCommitOp::create(code.builder, code.loc);
  Values results(layout.numStored());
  for (const auto &[row, sums] : blocks)
    for (const auto [index, sum] : llvm::zip_equal(
             registersOf(layout, row), vector::ToElementsOp::create(code.builder, code.loc, sums).getResults()))
      results[index] = sum;
  code.set(op.getResult(), ArrayRef<Value>(results));
}

void distributeMultiplyRows(ThreadCode &code, simt::MultiplyRowsOp op) {
  const TileLayout layout = simt::layoutOf(op.getType()).getLayout(), left = simt::layoutOf(op.getLeft()).getLayout();
  const int64_t N = layout.shape()[1].size, K = left.shape()[1].size;
  const MatrixImage right = *matrixIn(op.getRightImage(), op.getRightTurned() ? 0 : 1, N);
  const Value b = descriptorOf(code, right, code.add(code.held(op.getRight()), code.held(op.getRightAt())));
  constexpr int64_t elementsOfFragment = rowsOfProduct * kOfProduct / 128;
  Indices elements, registers, steps;
  for (int64_t row = 0; row < layout.shape()[0].size; row += rowsOfProduct) {
    if (!layout.storedAt({row, 0}))
      continue;
    registers.append(registersOf(layout, row));
    for (int64_t k = 0; k < K; k += kOfProduct)
      for (int64_t element = 0; element < elementsOfFragment; ++element)
        elements.push_back(*left.storedAt({row, k}) + element);
  }
  for (int64_t k = 0; k < K; k += kOfProduct)
    steps.push_back(right.at(0, k) / 16);
  const Value before = op.getAcc() ? code.pick(code.held(op.getAcc()), registers) : Value();
  const auto type = cast<VectorType>(ThreadCode::heldType(op.getType()));
  const Value sums = code.make<simt::WgmmaRowsOp>(type, code.pick(code.held(op.getLeft()), elements), b, before,
                                                  right.isTurned, steps);
  Values results(layout.numStored());
  for (const auto [index, sum] :
       llvm::zip_equal(registers, vector::ToElementsOp::create(code.builder, code.loc, sums).getResults()))
    results[index] = sum;
  code.set(op.getResult(), ArrayRef<Value>(results));
}

void distributeWaitMultiply(ThreadCode &code, simt::WaitMultiplyOp op) {
  Values before;
  for (const Value sums : op.getSums())
    llvm::append_range(before, code.elementsOf(sums));
  const auto type = VectorType::get({static_cast<int64_t>(before.size())}, code.builder.getF32Type());
  const Value all = code.make<vector::FromElementsOp>(type, before);
  const Value waited = code.make<simt::WgmmaWaitOp>(type, op.getPending(), all);
  const auto after = vector::ToElementsOp::create(code.builder, code.loc, waited).getResults();
  size_t first = 0;
  for (const Value sums : op.getResults()) {
    const int64_t count = simt::layoutOf(sums).getLayout().numStored();
    code.set(sums, Values(after.slice(first, count)));
    first += count;
  }
}

} // namespace kiln::lowering::gpu
