// Verifies the attributes named tile.….

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/TileDialect.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace kiln::tile {

/// A pair of arguments (i < j), both views.
static bool isPairOfViews(Attribute attribute, FunctionOpInterface function) {
  auto pair = dyn_cast<DenseI64ArrayAttr>(attribute);
  if (!pair || pair.size() != 2 || pair[0] < 0 || pair[0] >= pair[1] || pair[1] >= function.getNumArguments())
    return false;
  return llvm::all_of(pair.asArrayRef(), [&](int64_t i) { return isa<MemRefType>(function.getArgumentTypes()[i]); });
}

/// Pairs of a view's argument and an axis, at least two.
static bool isGroupOfExtents(Attribute attribute, FunctionOpInterface function) {
  auto group = dyn_cast<DenseI64ArrayAttr>(attribute);
  if (!group || group.size() < 4 || group.size() % 2 != 0)
    return false;
  return llvm::all_of(llvm::seq<int64_t>(0, group.size() / 2), [&](int64_t i) {
    const int64_t argument = group[2 * i], axis = group[2 * i + 1];
    if (argument < 0 || argument >= function.getNumArguments())
      return false;
    auto view = dyn_cast<MemRefType>(function.getArgumentTypes()[argument]);
    return view && axis >= 0 && axis < view.getRank();
  });
}

static bool isPositive(Attribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  return number && number.getType().isInteger(64) && number.getInt() >= 1;
}

static constexpr llvm::StringLiteral accuracyName = "tile.accuracy";

Accuracy accuracyOf(Operation *op) {
  const auto name = op->getAttrOfType<StringAttr>(accuracyName);
  return name ? symbolizeAccuracy(name.getValue()).value_or(Accuracy::Full) : Accuracy::Full;
}

void setAccuracy(Operation *op, Accuracy accuracy) {
  if (accuracy == Accuracy::Full)
    op->removeDiscardableAttr(accuracyName);
  else
    op->setDiscardableAttr(accuracyName, StringAttr::get(op->getContext(), stringifyAccuracy(accuracy)));
}

/// Whether a faster, less accurate form of the operation exists.
static bool mayBeFast(Operation *op) {
  static constexpr llvm::StringLiteral names[] = {
#define KILN_FAST_FUNCTION(name, ...) "math." #name,
#include "dialect/tile/Functions.def"
      "arith.divf"};
  return llvm::is_contained(names, op->getName().getStringRef());
}

/// Whether it is an atomic, of a tile or of one thread.
static bool hasScope(Operation *op) {
  auto access = dyn_cast<AccessOp>(op);
  const StringRef name = op->getName().getStringRef();
  return (access && access.isAtomic()) ||
         llvm::is_contained({"simt.atomic_rmw", "simt.atomic_cas", "simt.fence"}, name) ||
         (llvm::is_contained({"simt.ld", "simt.st"}, name) && op->hasAttr("strong"));
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  const StringRef name = attribute.getName(), what = op->getName().getStringRef();
  const Attribute value = attribute.getValue();
  const auto expect = [&](bool holds, const char *wanted) -> LogicalResult {
    if (holds)
      return success();
    return op->emitError() << "expected '" << name << "' to be " << wanted << ", but got " << value;
  };
  const bool isUnit = isa<UnitAttr>(value), isLoop = what == "scf.for";
  const auto text = dyn_cast<StringAttr>(value);
  const auto array = dyn_cast<ArrayAttr>(value);
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (name == "tile.message" || name == "tile.where")
    return expect(isa<CheckOp>(op) && isa<FlatSymbolRefAttr>(value), "a symbol on a 'tile.check'");
  if (name == "tile.label")
    return expect(isa<PrintOp>(op) && isa<FlatSymbolRefAttr>(value), "a symbol on a 'tile.print'");
  if (name == "tile.unsigned") {
    const bool matters = isa<CastOp, DivOp, RemOp, ShrOp, ReduceOp, ScanOp, AtomicRmwOp, PrintOp, SortOp>(op) ||
                         what == "simt.atomic_rmw";
    return expect(matters && isUnit, "a unit on an operation to which the sign of integers matters");
  }
  if (name == factorsName) {
    const auto isByte = [](Attribute each) {
      const auto type = dyn_cast<TypeAttr>(each);
      return type && isByteFloat(type.getValue()) && !isScale(type.getValue());
    };
    const bool multiplies = isa<DotOp>(op) || what == "simt.mma";
    return expect(multiplies && array && array.size() == 2 && llvm::all_of(array, isByte),
                  "two floats of 8 bits on a product");
  }
  if (name == "tile.coarse")
    return expect(isa<DotOp>(op) && op->hasAttr(factorsName) && isUnit, "a unit on a 'tile.dot' with 'tile.factors'");
  if (name == cacheName) {
    const bool caches = isa<LoadOp, StoreOp, GatherOp, ScatterOp>(op) ||
                        llvm::is_contained({"simt.fetch", "simt.ld", "simt.st", "simt.cp_async"}, what);
    return expect(caches && text && (text == "stream" || text == "keep"), "\"stream\" or \"keep\" on a load or store");
  }
  if (name == scopeName)
    return expect(hasScope(op) && text && (text == "block" || text == "system"),
                  "\"block\" or \"system\" on an atomic");
  if (name == "tile.element") {
    const auto number = dyn_cast<IntegerAttr>(value);
    return expect((isa<PrintOp>(op) || what == "simt.print") && number && number.getType().isInteger(32) &&
                      typeNumbered(op->getContext(), static_cast<unsigned>(number.getInt())),
                  "the number of an element type, an i32, on a print");
  }
  if (name == "tile.inside") {
    const auto dims = dyn_cast<DenseI64ArrayAttr>(value);
    auto access = isa<LoadOp, StoreOp>(op) ? dyn_cast<AccessOp>(op) : AccessOp();
    const auto view = access                 ? access.getView().getType()
                      : what == "simt.fetch" ? dyn_cast<MemRefType>(op->getOperand(0).getType())
                                             : MemRefType();
    const auto isDim = [&](int64_t dim) { return dim >= 0 && dim < view.getRank(); };
    return expect(dims && view && llvm::all_of(dims.asArrayRef(), isDim),
                  "dimensions of the view on a load, store or copy");
  }
  if (name == accuracyName)
    return expect(mayBeFast(op) && text && symbolizeAccuracy(text.getValue()),
                  "\"full\" or \"fast\" on a division or a function that may be fast");
  if (name == "tile.kernel")
    return expect(function && isUnit, "a unit on a function");
  if (name == "tile.unroll" || (name == "tile.stages" && isLoop))
    return expect(isLoop && isPositive(value), "an i64 from 1 on a loop");
  if (name == "tile.warps" || name == "tile.programs" || name == "tile.stages" || name == "tile.problems")
    return expect(function && isPositive(value), "an i64 from 1 on a function");
  if (name == "tile.disjoint")
    return expect(function && array &&
                      llvm::all_of(array, [&](Attribute pair) { return isPairOfViews(pair, function); }),
                  "pairs of views on a function, each pair in order");
  if (name == "tile.equal_extents")
    return expect(function && array &&
                      llvm::all_of(array, [&](Attribute group) { return isGroupOfExtents(group, function); }),
                  "groups of extents on a function, each two or more pairs of a view and an axis");
  return op->emitError() << "expected an attribute that the 'tile' dialect has, but got '" << name << "'";
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                    NamedAttribute attribute) {
  const StringRef name = attribute.getName();
  const Attribute value = attribute.getValue();
  auto function = dyn_cast<FunctionOpInterface>(op);
  const bool isView = function && isa<MemRefType>(function.getArgumentTypes()[argument]);
  const auto expect = [&](bool holds, const char *wanted) -> LogicalResult {
    if (holds)
      return success();
    return op->emitError() << "expected '" << name << "' of argument " << argument << " to be " << wanted
                           << ", but got " << value;
  };
  if (name == "tile.align")
    return expect(isView && isPositive(value) && llvm::isPowerOf2_64(cast<IntegerAttr>(value).getInt()),
                  "a power of two in i64 on a view");
  if (name == "tile.strides_by_16" || name == "tile.extent_by_16" || name == "tile.fits_32")
    return expect(isView && isa<UnitAttr>(value), "a unit on a view");
  return op->emitError() << "expected an attribute of arguments that the 'tile' dialect has, but got '" << name << "'";
}

} // namespace kiln::tile
