// A product by one thread's share of it: as instructions of the tensor core, or as outer products in registers.

#include "lowering/gpu/ThreadCode.h"

#include "dialect/simt/layout/Fragments.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <map>

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::TileLayout;

static TileLayout layoutOf(Value tile) { return simt::layoutOf(tile).getLayout(); }

/// An operand with zeros past the end of K, where its layout pads it: 0 · NaN would not be 0.
static Value withoutPadding(ThreadCode &code, Value operand, unsigned axis) {
  const Type element = cast<RankedTensorType>(operand.getType()).getElementType();
  return code.paddedWith(code.builder.getZeroAttr(element), code.held(operand), simt::layoutOf(operand), axis);
}

/// Fragments lie together in registers: those of the sums four by four, those of operands as many as an instruction
/// takes.
static void multiplyByTensorCore(ThreadCode &code, tile::DotOp op) {
  const TileLayout a = layoutOf(op.getA()), b = layoutOf(op.getB()), acc = layoutOf(op.getAcc());
  const unsigned rank = acc.rank(), left = rank - 2, right = rank - 1; // their dimensions
  const int64_t K = a.shape()[right].size;
  const unsigned bits = cast<RankedTensorType>(op.getA().getType()).getElementTypeBitWidth();
  const unsigned k = simt::mmaShapeFor(bits, K)->k;
  const Attribute factors = op->getAttr(tile::factorsName);
  const bool isCoarse = op->hasAttr("tile.coarse");
  const auto fragments = [&](Value vector, const TileLayout &layout, unsigned size) {
    return [&code, &layout, vector, size, known = std::map<int64_t, Value>()](ArrayRef<int64_t> position) mutable {
      const int64_t first = *layout.storedAt(position);
      Value &fragment = known[first];
      if (!fragment)
        fragment = code.pick(vector, llvm::to_vector(llvm::seq(first, first + size)));
      return fragment;
    };
  };
  auto leftAt = fragments(withoutPadding(code, op.getA(), right), a, 16 * k / simt::numLanes);
  auto rightAt = fragments(withoutPadding(code, op.getB(), left), b, 8 * k / simt::numLanes);
  const auto multiply = [&](ArrayRef<int64_t> x, ArrayRef<int64_t> y, Value sum) -> Value {
    auto made = simt::MmaOp::create(code.builder, code.loc, sum.getType(), leftAt(x), rightAt(y), sum);
    if (factors)
      made->setAttr(tile::factorsName, factors);
    return made;
  };
  const Value sums = code.held(op.getAcc());
  SmallVector<Value> blocks;
  for (int64_t stored = 0; stored < acc.numStored(); stored += 4)
    blocks.push_back(code.pick(sums, {stored, stored + 1, stored + 2, stored + 3}));
  // Matrix by matrix, and step by step, so that no more than one step's operands are needed at a time.
  std::map<SmallVector<int64_t>, SmallVector<int64_t>> matrices; // the blocks of each, by its leading positions
  for (int64_t number = 0; number < static_cast<int64_t>(blocks.size()); ++number)
    matrices[SmallVector<int64_t>(ArrayRef(acc.positionOf(4 * number)).drop_back(2))].push_back(number);
  for (const auto &[matrix, numbers] : matrices)
    for (int64_t step = 0; step < a.shape()[right].padded; step += k)
      for (const int64_t number : numbers) {
        SmallVector<int64_t> x = acc.positionOf(4 * number), y(x);
        x[right] = y[left] = step;
        Value &sum = blocks[number];
        if (!isCoarse) {
          sum = multiply(x, y, sum);
          continue;
        }
        // No sum is cut off but those of one instruction.
        const Value zeros = code.make<arith::ConstantOp>(code.builder.getZeroAttr(sum.getType()));
        sum = code.make<arith::AddFOp>(sum, multiply(x, y, zeros));
      }
  Values results;
  for (const Value sum : blocks)
    llvm::append_range(results, vector::ToElementsOp::create(code.builder, code.loc, sum).getResults());
  code.set(op.getResult(), ArrayRef<Value>(results));
}

/// Operands as what products are summed in.
static Value widened(ThreadCode &code, Value vector, Type sum) {
  const auto type = cast<VectorType>(vector.getType());
  if (type.getElementType() == sum)
    return vector;
  if (sum.isInteger())
    return code.make<arith::ExtSIOp>(typeLike(type, sum), vector);
  return code.make<arith::ExtFOp>(typeLike(type, sum), vector);
}

static void multiplyInRegisters(ThreadCode &code, tile::DotOp op) {
  const TileLayout a = layoutOf(op.getA()), b = layoutOf(op.getB()), acc = layoutOf(op.getAcc());
  const Type type = cast<RankedTensorType>(op.getType()).getElementType();
  const Value left = widened(code, code.held(op.getA()), type), right = widened(code, code.held(op.getB()), type);
  Value sum = code.held(op.getAcc());
  const unsigned rank = acc.rank();
  for (int64_t step = 0; step < a.shape()[rank - 1].size; ++step) {
    Indices rows, columns;
    for (int64_t stored = 0; stored < acc.numStored(); ++stored) {
      SmallVector<int64_t> row = acc.positionOf(stored), column(row);
      row[rank - 1] = column[rank - 2] = step;
      rows.push_back(*a.storedAt(row));
      columns.push_back(*b.storedAt(column));
    }
    const Value x = code.pick(left, rows), y = code.pick(right, columns);
    sum = type.isInteger() ? code.add(sum, code.make<arith::MulIOp>(x, y)) : code.make<math::FmaOp>(x, y, sum);
  }
  code.set(op.getResult(), sum);
}

void distributeDot(ThreadCode &code, tile::DotOp op) {
  if (op->hasAttr("simt.mma"))
    multiplyByTensorCore(code, op);
  else
    multiplyInRegisters(code, op);
}

} // namespace kiln::lowering::gpu
