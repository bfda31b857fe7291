// Verifies the attributes of the CPU's passes.

#include "lowering/cpu/CpuDialect.h"

#include "lowering/analysis/TileUses.h"
#include "lowering/cpu/ProductUnit.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace kiln::lowering::cpu {

CpuDialect::CpuDialect(MLIRContext *context) : Dialect(getDialectNamespace(), context, TypeID::get<CpuDialect>()) {}

/// A bool for each result of `op`.
static bool isFlagOfResults(Operation *op, Attribute attribute) {
  auto flags = dyn_cast<DenseBoolArrayAttr>(attribute);
  return flags && flags.size() == op->getNumResults();
}

static bool isNumberFrom(int64_t least, Attribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  return number && number.getType().isInteger(64) && number.getInt() >= least;
}

/// Whether at least this many loops, each directly in the next one, enclose the product.
static bool hasLoops(tile::DotOp dot, Attribute count) {
  Operation *op = dot;
  for (int64_t i = isNumberFrom(1, count) ? cast<IntegerAttr>(count).getInt() : 0; i > 0; --i)
    if (!(op = dyn_cast<scf::ForOp>(op->getParentOp())))
      return false;
  return isNumberFrom(1, count);
}

/// Whether a unit of this name computes such products.
static bool isComputedBy(tile::DotOp dot, StringRef name) {
  Type element = getElementTypeOrSelf(dot.getA().getType());
  const int64_t depth = tile::shapeOf(dot.getA().getType()).back();
  return llvm::any_of(units, [&](const UnitInfo &info) { return info.name == name && takes(info, element, depth); });
}

LogicalResult CpuDialect::verifyOperationAttribute(Operation *op, NamedAttribute named) {
  StringRef name = named.getName();
  Attribute value = named.getValue();
  auto expect = [&](bool holds, const char *what) -> LogicalResult {
    if (holds)
      return success();
    return op->emitError() << "expected '" << name << "' to be " << what << ", but got " << value << " on '"
                           << op->getName() << "'";
  };
  auto dot = dyn_cast<tile::DotOp>(op);
  bool makesTile = op->getNumResults() == 1 && isa<RankedTensorType>(op->getResult(0).getType());
  if (name == "cpu.view")
    return expect(isLoad(op) && isa<UnitAttr>(value), "a unit on a load");
  if (name == "cpu.in_place")
    return expect(isa<scf::ForOp, scf::WhileOp>(op) && isFlagOfResults(op, value), "a bool for each result of a loop");
  if (name == "cpu.epilogue")
    return expect((dot || isa<scf::ForOp>(op)) && isFlagOfResults(op, value),
                  "a bool for each result of a loop or product");
  if (name == "cpu.scratch")
    return expect(makesTile && isa<UnitAttr>(value), "a unit on what makes a tile");
  if (name == "cpu.dense")
    return expect(makesTile && op->hasAttr("cpu.scratch") && isa<UnitAttr>(value),
                  "a unit on a tile in scratch memory");
  if (name == "cpu.unit") {
    auto unit = dyn_cast<StringAttr>(value);
    return expect(dot && unit && isComputedBy(dot, unit.getValue()),
                  "a unit on a product of its elements and of whole words along k");
  }
  if (name == "cpu.flushes")
    return expect(isa<arith::TruncFOp>(op) && isa<UnitAttr>(value), "a unit on a rounding");
  if (name == "cpu.left") {
    auto place = dyn_cast<StringAttr>(value);
    return expect(dot && place && llvm::is_contained({"scratch", "view", "panels", "copy"}, place.getValue()),
                  "'scratch', 'view', 'panels' or 'copy' on a product");
  }
  if (name == "cpu.right_transposed")
    return expect(dot && isa<UnitAttr>(value), "a unit on a product");
  if (name == "cpu.right_before")
    return expect(dot && hasLoops(dot, value), "a number of loops around a product");
  if (name == "cpu.scratch_bytes")
    return expect(isa<FunctionOpInterface>(op) && isNumberFrom(0, value), "an i64 from 0 on a function");
  return op->emitError() << "expected an attribute that passes of the CPU make, but got '" << name << "'";
}

} // namespace kiln::lowering::cpu
