// Products of warpgroups from shared memory (wgmma): descriptors, and accumulator registers.

#include "lowering/gpu/ThreadCode.h"

#include "dialect/simt/WgmmaLayout.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::WgmmaLayout;

static constexpr int64_t rowsOfProduct = 64, kOfProduct = 16;
/// Elements of a thread in a fragment of the left operand.
static constexpr int64_t elementsOfFragment = rowsOfProduct * kOfProduct / 128;

/// The descriptor of the matrix at `begin`, without the offset of a part.
static Value descriptorOf(ThreadCode &code, const WgmmaLayout &matrix, Value begin) {
  const Value piece = code.make<arith::ShRUIOp>(begin, code.i32(4));
  return code.make<arith::AddIOp>(code.make<arith::ExtUIOp>(code.builder.getI64Type(), piece),
                                  code.i64(static_cast<int64_t>(matrix.descriptor())));
}

/// The offset of the warpgroup's rows in the left matrix; null: 0.
static Value offsetOfGroup(ThreadCode &code, const TileLayout &acc, const WgmmaLayout &left) {
  simt::Vecs columns(simt::laneBits + 2, 0);
  for (const simt::Vec unit : acc.bases(simt::Hw::warp).drop_front(2))
    columns.push_back(static_cast<simt::Vec>(left.at(acc.shape().positionIn(0, unit), 0)));
  return code.imageOfThread({32, columns});
}

/// The accumulator's registers for the 64 rows from `row` on, in the instruction's order.
static Indices registersOf(const TileLayout &acc, int64_t row) {
  Indices indices;
  for (int64_t column = 0; column < acc.shape()[1].size; column += 8)
    for (const int64_t below : {0, 8})
      for (const int64_t right : {0, 1})
        indices.push_back(*acc.storedAt({row + below, column + right}));
  return indices;
}

void distribute(ThreadCode &code, simt::MultiplyOp op) {
  const TileLayout layout = simt::layoutOf(op.getAcc()).getLayout();
  const int64_t N = layout.shape()[1].size;
  const WgmmaLayout left = *matrixIn(op.getLeftLayout(), op.getLeftTransposed() ? 1 : 0, rowsOfProduct),
                    right = *matrixIn(op.getRightLayout(), op.getRightTransposed() ? 0 : 1, N);
  const int64_t K = op.getLeftLayout().getShape()[1 - left.outer];
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
  const Type element = op.getLeftLayout().getElement();
  for (int64_t k = 0; k < K; k += kOfProduct)
    for (auto &[row, acc] : blocks)
      acc = simt::WgmmaOp::create(code.builder, code.loc, acc.getType(), element, part(a, left.at(row, k)),
                                  left.isTransposed, part(b, right.at(0, k)), right.isTransposed, acc);
  simt::WgmmaCommitOp::create(code.builder, code.loc);
  Values results(layout.numStored());
  for (const auto &[row, acc] : blocks)
    for (const auto [index, sum] : llvm::zip_equal(
             registersOf(layout, row), vector::ToElementsOp::create(code.builder, code.loc, acc).getResults()))
      results[index] = sum;
  code.set(op.getResult(), ArrayRef<Value>(results));
}

void distribute(ThreadCode &code, simt::MultiplyRowsOp op) {
  const TileLayout layout = simt::layoutOf(op.getType()).getLayout(), left = simt::layoutOf(op.getLeft()).getLayout();
  const int64_t N = layout.shape()[1].size, K = left.shape()[1].size;
  const WgmmaLayout right = *matrixIn(op.getRightLayout(), op.getRightTransposed() ? 0 : 1, N);
  const Value b = descriptorOf(code, right, code.add(code.held(op.getRight()), code.held(op.getRightAt())));
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
  const Value acc = code.make<simt::WgmmaRowsOp>(type, code.pick(code.held(op.getLeft()), elements), b, before,
                                                 right.isTransposed, steps);
  Values results(layout.numStored());
  for (const auto [index, sum] :
       llvm::zip_equal(registers, vector::ToElementsOp::create(code.builder, code.loc, acc).getResults()))
    results[index] = sum;
  code.set(op.getResult(), ArrayRef<Value>(results));
}

void distribute(ThreadCode &code, simt::WaitMultiplyOp op) {
  Values before;
  for (const Value acc : op.getAcc())
    llvm::append_range(before, code.elementsOf(acc));
  const auto type = VectorType::get({static_cast<int64_t>(before.size())}, code.builder.getF32Type());
  const Value all = code.make<vector::FromElementsOp>(type, before);
  const Value waited = code.make<simt::WgmmaWaitOp>(type, op.getPending(), all);
  const auto after = vector::ToElementsOp::create(code.builder, code.loc, waited).getResults();
  size_t first = 0;
  for (const Value acc : op.getResults()) {
    const int64_t count = simt::layoutOf(acc).getLayout().numStored();
    code.set(acc, Values(after.slice(first, count)));
    first += count;
  }
}

/// The steps of `product` from `from` to `to`, plus `acc`.
static simt::WgmmaRowsOp stepsOf(OpBuilder &builder, simt::WgmmaRowsOp product, int64_t from, int64_t to, Value acc) {
  const ArrayRef<int64_t> steps = product.getSteps();
  Indices elements;
  for (int64_t block = 0; block < product.blocks(); ++block)
    for (int64_t at = from * elementsOfFragment; at < to * elementsOfFragment; ++at)
      elements.push_back(block * static_cast<int64_t>(steps.size()) * elementsOfFragment + at);
  const Value left = vector::ShuffleOp::create(builder, product.getLoc(), product.getA(), product.getA(), elements);
  return simt::WgmmaRowsOp::create(builder, product.getLoc(), product.getType(), left, product.getB(), acc,
                                   product.getBTransposed(), steps.slice(from, to - from));
}

/// Leaves the first step of `product` in its place and begins the others after `wait`, unless `wait` returns its
/// accumulators.
static void split(simt::WgmmaRowsOp product, simt::WgmmaWaitOp wait) {
  SmallVector<Operation *> renamings = {product}; // and operations that only rename the registers of its accumulators
  const auto isRenamed = [&](Value value) { return llvm::is_contained(renamings, value.getDefiningOp()); };
  for (Operation *op = product->getNextNode(); op != wait; op = op->getNextNode())
    if (llvm::any_of(op->getOperands(), isRenamed)) {
      if (!isPure(op))
        return;
      renamings.push_back(op);
    }
  if (isRenamed(wait.getAcc()))
    return;
  OpBuilder builder(product);
  const Value first = stepsOf(builder, product, 0, 1, product.getAcc());
  builder.setInsertionPointAfter(wait);
  Operation *last = stepsOf(builder, product, 1, static_cast<int64_t>(product.getSteps().size()), first);
  product.replaceAllUsesWith(last->getResult(0));
  for (Operation *op : ArrayRef(renamings).drop_front()) {
    op->moveAfter(last);
    last = op;
  }
  product.erase();
}

void splitProducts(Block &block) {
  simt::WgmmaRowsOp product; // the newest one
  simt::WgmmaWaitOp wait;    // for all products except that one
  bool computes = false;     // after `wait`
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto begun = dyn_cast<simt::WgmmaRowsOp>(op)) {
      product = begun;
      wait = nullptr;
    } else if (isa<simt::WgmmaOp>(op) || op.getNumRegions() > 0) {
      product = nullptr;
      wait = nullptr;
    } else if (auto last = dyn_cast<simt::WgmmaWaitOp>(op)) {
      if (wait && computes && last.getPending() == 0 && product.getSteps().size() > 1)
        split(product, wait);
      wait = product && last.getPending() == 1 ? last : nullptr;
      computes = false;
      if (last.getPending() == 0)
        product = nullptr;
    } else if (wait && OpTrait::hasElementwiseMappableTraits(&op)) {
      computes |= isa<VectorType>(op.getResult(0).getType());
    }
  }
}

} // namespace kiln::lowering::gpu
