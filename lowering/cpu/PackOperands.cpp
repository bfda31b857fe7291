// Decides how a product's operands reach its micro-kernel, and records it as attributes:
//
//     cpu.left            where the elements of a are read:
//       "scratch"         in the scratch memory of a, or of the tile that a is the transpose of
//       "view"            in the view that a is loaded from; a copy if it begins outside or its rows conflict in cache
//       "panels"          in panels of a few rows: a column-major a would access another page at every k, and elements
//                         of its words are not adjacent; transposed to rows for AMX
//       "copy"            in a copy, padded with zeros; also for incomplete blocks with AMX
//     cpu.right_transposed    b is contiguous along k: it is read by rows and transposed in registers during packing
//     cpu.right_before        b is invariant in this many loops around the product: it is packed before them
//
//     %0 = tile.dot %a, %b, %acc {cpu.left = "view", cpu.right_transposed} : …

#include "lowering/Passes.h"

#include "lowering/cpu/Evaluator.h"
#include "lowering/cpu/ProductUnit.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kiln::lowering::cpu {

#define GEN_PASS_DEF_PACKOPERANDS
#include "lowering/cpu/Passes.h.inc"

/// Whether `tile` will be in scratch memory: by `cpu.scratch`, as a carried tile, or as a result of an operation with
/// its own nest.
static bool isInScratch(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (!op || op->hasAttr("cpu.scratch"))
    return true;
  return !isInlinable(op) && !isLoad(op);
}

/// Whether the last dimension of `load` is contiguous in memory, and not of extent 1.
static bool hasRows(tile::LoadOp load) {
  auto [strides, start] = load.getView().getType().getStridesAndOffset();
  return strides.back() == 1 && tile::shapeOf(load.getType()).back() != 1;
}

/// Whether a product can read `tile` directly from its view, `group` adjacent elements of a row at a time.
static bool liesInView(Value tile, Type element, int64_t group) {
  auto load = tile.getDefiningOp<tile::LoadOp>();
  return load && load->hasAttr("cpu.view") && load.getPadding() == tile::Padding::Zero && !isInScratch(tile) &&
         getElementTypeOrSelf(tile.getType()) == element && load.getView().getType().getElementType() == element &&
         (group == 1 || hasRows(load));
}

static StringRef placeOfLeft(tile::DotOp dot, int64_t lanes, int64_t maxRows) {
  Value tile = dot.getA();
  auto shape = tile::shapeOf(tile.getType());
  const int64_t M = shape[shape.size() - 2], K = shape.back(), rows = std::min(M, maxRows);
  bool swapped = false;
  for (auto transpose = tile.getDefiningOp<tile::TransposeOp>(); transpose && swapsMatrix(transpose);
       transpose = tile.getDefiningOp<tile::TransposeOp>()) {
    tile = transpose.getSource();
    swapped = !swapped;
  }
  const Unit unit = unitOf(dot);
  const int64_t group = groupOf(unit);
  if (swapped && group > 1)
    return "panels";
  if (hasTiles(unit) && (M % (2 * tileRows) != 0 || K % (tileWords * group) != 0))
    return "copy";
  if (isInScratch(tile))
    return "scratch";
  Type element = getElementTypeOrSelf(dot.getA().getType());
  bool inView = liesInView(tile, element, group);
  if (auto reshape = tile.getDefiningOp<tile::ReshapeOp>(); reshape && M != 1 && K != 1 && isPlain(reshape))
    inView = liesInView(reshape.getSource(), element, group);
  if (inView && !swapped)
    return "view";
  return swapped && rows < lanes && lanes % rows == 0 ? "panels" : "copy";
}

/// The contiguous dimension of `tile`: the last one of the tile that it is a transpose of.
static int64_t axisAlongMemory(Value tile) {
  Operation *op = tile.getDefiningOp();
  const auto last = static_cast<int64_t>(tile::shapeOf(tile.getType()).size()) - 1;
  if (isInScratch(tile))
    return last;
  if (auto transpose = dyn_cast<tile::TransposeOp>(op))
    return llvm::find(transpose.getPermutation(), axisAlongMemory(transpose.getSource())) -
           transpose.getPermutation().begin();
  return isElementwise(op) ? axisAlongMemory(op->getOperand(0)) : last;
}

/// Whether b is contiguous along k.
static bool isTransposed(Value tile) {
  return axisAlongMemory(tile) + 2 == static_cast<int64_t>(tile::shapeOf(tile.getType()).size());
}

/// Whether the elements of `tile` can be computed before `loop`, which encloses their reader.
static bool isKnownBefore(Value tile, scf::ForOp loop) {
  SmallVector<Value> work = {tile};
  llvm::SmallDenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (!isa<RankedTensorType>(value.getType())) {
      if (loop->isAncestor(value.getParentRegion()->getParentOp()))
        return false;
      continue;
    }
    if (!op) // carried by a loop
      return false;
    if (!loop->isAncestor(op))
      continue;
    if (!isInlinable(op) || isInScratch(value))
      return false;
    llvm::append_range(work, op->getOperands());
  }
  return true;
}

/// The number of loops around the product, from the innermost on, in which b is invariant.
static int64_t loopsOfSameB(tile::DotOp dot) {
  int64_t count = 0;
  for (auto loop = dyn_cast<scf::ForOp>(dot->getParentOp()); loop && isKnownBefore(dot.getB(), loop);
       loop = dyn_cast<scf::ForOp>(loop->getParentOp()))
    ++count;
  return count;
}

namespace {
struct PackOperands : impl::PackOperandsBase<PackOperands> {
  using PackOperandsBase::PackOperandsBase;

  void runOnOperation() override {
    Builder builder(&getContext());
    const Machine machine = {vectorBits, registers};
    getOperation().walk([&](tile::DotOp dot) {
      dot->setAttr("cpu.left", builder.getStringAttr(placeOfLeft(dot, machine.lanes(), machine.rows())));
      if (isTransposed(dot.getB()))
        dot->setAttr("cpu.right_transposed", builder.getUnitAttr());
      if (int64_t loops = loopsOfSameB(dot))
        dot->setAttr("cpu.right_before", builder.getI64IntegerAttr(loops));
    });
  }
};
} // namespace

} // namespace kiln::lowering::cpu
