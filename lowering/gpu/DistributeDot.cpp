// One thread's share of a product: tensor core instructions, or outer products in registers.

#include "lowering/gpu/Accesses.h"
#include "lowering/gpu/ThreadCode.h"

#include "dialect/simt/layout/Fragments.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <map>

using namespace mlir;

namespace kiln::lowering::gpu {

static TileLayout layoutOf(Value tile) { return simt::layoutOf(tile).getLayout(); }

/// An operand whose padding along K is set to zero, because 0 · NaN would not be 0.
static Value withoutPadding(ThreadCode &code, Value operand, unsigned axis) {
  const Type element = cast<RankedTensorType>(operand.getType()).getElementType();
  return code.paddedWith(code.builder.getZeroAttr(element), code.held(operand), simt::layoutOf(operand), axis);
}

static Value isFinite(Emit &emit, Value x) {
  const Value infinity = emit.real(x.getType(), std::numeric_limits<double>::infinity());
  return emit.compare(arith::CmpFPredicate::OLT, emit.make<math::AbsFOp>(x), infinity);
}

/// Adds the products with small parts to those of large parts, except nonfinite ones. An infinite operand, or one
/// rounded to infinity, has no small part. A thread checks all at once: the sum of all is finite only if each is.
static void addFinite(ThreadCode &code, MutableArrayRef<Value> acc, ArrayRef<Value> terms) {
  Emit emit(code.builder, code.loc);
  const Value zero = emit.real(terms.front().getType(), 0);
  Value products = zero;
  for (size_t i = 0; i < terms.size(); i += 2)
    products = emit.make<math::FmaOp>(terms[i], terms[std::min(i + 1, terms.size() - 1)], products);
  const Value all = emit.make<vector::ReductionOp>(vector::CombiningKind::ADD, products);
  const auto add = [&](function_ref<Value(Value)> of) {
    return [&, of](OpBuilder &builder, Location loc) {
      SmallVector<Value> results;
      for (auto [sum, term] : llvm::zip(acc, terms))
        results.push_back(emit.make<arith::AddFOp>(sum, of(term)));
      scf::YieldOp::create(builder, loc, results);
    };
  };
  auto added = scf::IfOp::create(code.builder, code.loc, isFinite(emit, all), add([](Value term) { return term; }),
                                 add([&](Value term) { return emit.select(isFinite(emit, term), term, zero); }));
  llvm::copy(added.getResults(), acc.begin());
}

namespace {
/// An operand's fragments, each created at its first use.
class Fragments {
public:
  /// Fragments of `size` values per thread; `axis` is the summed one.
  Fragments(ThreadCode &code, tile::DotOp op, Value operand, unsigned axis, unsigned size)
      : code(code), layout(layoutOf(operand)), vector(withoutPadding(code, operand, axis)), size(size),
        pins(isSplit(op) && operand.getParentBlock() != op->getBlock()) {}

  Value at(ArrayRef<int64_t> position) {
    const int64_t first = *layout.storedAt(position);
    Value &fragment = known[first];
    if (!fragment) {
      fragment = code.pick(vector, llvm::to_vector(llvm::seq(first, first + size)));
      if (pins)
        fragment = code.make<simt::PinOp>(fragment.getType(), fragment);
    }
    return fragment;
  }

private:
  ThreadCode &code;
  const TileLayout layout;
  const Value vector;
  const int64_t size;
  const bool pins; // keeps the split of a loop-invariant operand in the loop; hoisted, its parts would take registers
  std::map<int64_t, Value> known;
};
} // namespace

/// Fragments are contiguous in registers: four values of the accumulator, and as many of an operand as an instruction
/// takes.
static void multiplyByTensorCore(ThreadCode &code, tile::DotOp op) {
  const TileLayout a = layoutOf(op.getA()), b = layoutOf(op.getB()), acc = layoutOf(op.getAcc());
  const unsigned rank = acc.rank(), left = rank - 2, right = rank - 1; // the operands' own dimensions
  const int64_t K = a.shape()[right].size;
  const unsigned k = simt::mmaShapeFor(multipliedBits(op), K)->k;
  const Attribute factors = op->getAttr(tile::factorsName);
  const bool isCoarse = op->hasAttr("tile.coarse");
  Fragments leftOnes(code, op, op.getA(), right, 16 * k / simt::numLanes),
      rightOnes(code, op, op.getB(), left, 8 * k / simt::numLanes);
  using Parts = std::pair<simt::PartAttr, simt::PartAttr>;
  const auto part = [&](simt::Part part) { return simt::PartAttr::get(op.getContext(), part); };
  const auto multiply = [&](ArrayRef<int64_t> x, ArrayRef<int64_t> y, Value sum, const Parts &parts = {}) -> Value {
    auto made = simt::MmaOp::create(code.builder, code.loc, sum.getType(), leftOnes.at(x), rightOnes.at(y), sum,
                                    parts.first, parts.second);
    if (factors)
      made->setAttr(tile::factorsName, factors);
    return made;
  };
  const Value sums = code.held(op.getAcc());
  SmallVector<Value> blocks;
  for (int64_t stored = 0; stored < acc.numStored(); stored += 4)
    blocks.push_back(code.pick(sums, {stored, stored + 1, stored + 2, stored + 3}));
  const auto zeros = [&] { return code.make<arith::ConstantOp>(code.builder.getZeroAttr(blocks.front().getType())); };
  SmallVector<Value> smallBlocks; // products of a large and a small part
  if (isSplit(op))
    smallBlocks.assign(blocks.size(), zeros());
  // By matrix and by step along K, so that only one step's operands are live at a time.
  std::map<SmallVector<int64_t>, SmallVector<int64_t>> matrices; // the blocks of each matrix, by leading positions
  for (int64_t number = 0; number < static_cast<int64_t>(blocks.size()); ++number)
    matrices[SmallVector<int64_t>(ArrayRef(acc.positionOf(4 * number)).drop_back(2))].push_back(number);
  for (const auto &[matrix, numbers] : matrices)
    for (int64_t step = 0; step < a.shape()[right].padded; step += k)
      for (const int64_t number : numbers) {
        SmallVector<int64_t> x = acc.positionOf(4 * number), y(x);
        x[right] = y[left] = step;
        Value &sum = blocks[number];
        if (isSplit(op)) {
          const simt::PartAttr large = part(simt::Part::Large), small = part(simt::Part::Small);
          smallBlocks[number] = multiply(x, y, multiply(x, y, smallBlocks[number], {small, large}), {large, small});
          sum = multiply(x, y, sum, {large, large});
        } else if (isCoarse) { // sums are truncated only within an instruction
          sum = code.make<arith::AddFOp>(sum, multiply(x, y, zeros()));
        } else {
          sum = multiply(x, y, sum);
        }
      }
  if (isSplit(op))
    addFinite(code, blocks, smallBlocks);
  Values results;
  for (const Value sum : blocks)
    llvm::append_range(results, vector::ToElementsOp::create(code.builder, code.loc, sum).getResults());
  code.set(op.getResult(), ArrayRef<Value>(results));
}

/// Operands converted to the accumulator's type.
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

void distribute(ThreadCode &code, tile::DotOp op) {
  if (op->hasAttr("simt.mma"))
    multiplyByTensorCore(code, op);
  else
    multiplyInRegisters(code, op);
}

} // namespace kiln::lowering::gpu
