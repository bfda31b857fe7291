// Verifies the attributes named tile.….

#include "dialect/tile/AccessRules.h"
#include "dialect/tile/SortOps.h"
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

/// Whether it is an atomic, or of the operations of one thread that do what an atomic does.
static bool hasScope(Operation *op) {
  auto access = dyn_cast<AccessOp>(op);
  const StringRef name = op->getName().getStringRef();
  return (access && access.isAtomic()) ||
         llvm::is_contained({"simt.atomic_rmw", "simt.atomic_cas", "simt.fence"}, name) ||
         (llvm::is_contained({"simt.ld", "simt.st"}, name) && op->hasAttr("strong"));
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  auto expected = [&](const char *what) {
    return op->emitError() << "expected '" << name << "' to be " << what << ", but got " << attribute.getValue();
  };
  if (name == "tile.message" || name == "tile.where" || name == "tile.label") {
    bool belongs = name == "tile.label" ? isa<PrintOp>(op) : isa<CheckOp>(op);
    return belongs && isa<FlatSymbolRefAttr>(attribute.getValue())
               ? success()
               : expected(name == "tile.label" ? "a symbol on a 'tile.print'" : "a symbol on a 'tile.check'");
  }
  if (name == "tile.unsigned") {
    const bool matters = isa<CastOp, DivOp, RemOp, ShrOp, ReduceOp, ScanOp, AtomicRmwOp, PrintOp, SortOp>(op) ||
                         op->getName().getStringRef() == "simt.atomic_rmw";
    const bool good = matters && isa<UnitAttr>(attribute.getValue());
    return good ? success() : expected("a unit on an operation to which the sign of integers matters");
  }
  if (name == factorsName) {
    const auto types = dyn_cast<ArrayAttr>(attribute.getValue());
    const auto isByte = [](Attribute each) {
      const auto type = dyn_cast<TypeAttr>(each);
      return type && isByteFloat(type.getValue());
    };
    const bool multiplies = isa<DotOp>(op) || op->getName().getStringRef() == "simt.mma";
    return multiplies && types && types.size() == 2 && llvm::all_of(types, isByte)
               ? success()
               : expected("two floats of 8 bits on a product");
  }
  if (name == "tile.coarse")
    return isa<DotOp>(op) && op->hasAttr(factorsName) && isa<UnitAttr>(attribute.getValue())
               ? success()
               : expected("a unit on a 'tile.dot' with 'tile.factors'");
  if (name == cacheName) {
    const auto hint = dyn_cast<StringAttr>(attribute.getValue());
    const StringRef what = op->getName().getStringRef();
    const bool caches = isa<LoadOp, StoreOp, GatherOp, ScatterOp>(op) ||
                        llvm::is_contained({"simt.fetch", "simt.ld", "simt.st", "simt.cp_async"}, what);
    return caches && hint && (hint == "stream" || hint == "keep")
               ? success()
               : expected("\"stream\" or \"keep\" on a load or store");
  }
  if (name == scopeName) {
    const auto scope = dyn_cast<StringAttr>(attribute.getValue());
    return hasScope(op) && scope && (scope == "block" || scope == "system")
               ? success()
               : expected("\"block\" or \"system\" on an atomic");
  }
  if (name == "tile.element") {
    const auto number = dyn_cast<IntegerAttr>(attribute.getValue());
    const bool prints = isa<PrintOp>(op) || op->getName().getStringRef() == "simt.print";
    const bool good = prints && number && number.getType().isInteger(32) &&
                      typeNumbered(op->getContext(), static_cast<unsigned>(number.getInt()));
    return good ? success() : expected("the number of an element type, an i32, on a print");
  }
  if (name == "tile.inside") {
    auto dims = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    const bool copies = op->getName().getStringRef() == "simt.fetch";
    auto access = isa<LoadOp, StoreOp>(op) ? dyn_cast<AccessOp>(op) : AccessOp();
    auto view = access   ? access.getView().getType()
                : copies ? dyn_cast<MemRefType>(op->getOperand(0).getType())
                         : MemRefType();
    bool good =
        dims && view && llvm::all_of(dims.asArrayRef(), [&](int64_t dim) { return dim >= 0 && dim < view.getRank(); });
    return good ? success() : expected("dimensions of the view on a load, store or copy");
  }
  if (name == accuracyName) {
    auto text = dyn_cast<StringAttr>(attribute.getValue());
    bool good = mayBeFast(op) && text && symbolizeAccuracy(text.getValue());
    return good ? success() : expected("\"full\" or \"fast\" on a division or a function that may be fast");
  }
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (name == "tile.kernel")
    return function && isa<UnitAttr>(attribute.getValue()) ? success() : expected("a unit on a function");
  const bool isLoop = op->getName().getStringRef() == "scf.for";
  if (name == "tile.unroll" || (name == "tile.stages" && isLoop))
    return isLoop && isPositive(attribute.getValue()) ? success() : expected("an i64 from 1 on a loop");
  if (name == "tile.warps" || name == "tile.programs" || name == "tile.stages" || name == "tile.problems")
    return function && isPositive(attribute.getValue()) ? success() : expected("an i64 from 1 on a function");
  if (name == "tile.disjoint") {
    auto pairs = dyn_cast<ArrayAttr>(attribute.getValue());
    bool good = function && pairs && llvm::all_of(pairs, [&](Attribute pair) { return isPairOfViews(pair, function); });
    return good ? success() : expected("pairs of views on a function, each pair in order");
  }
  return op->emitError() << "expected an attribute that the 'tile' dialect has, but got '" << name << "'";
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName();
  auto function = dyn_cast<FunctionOpInterface>(op);
  bool isView = function && isa<MemRefType>(function.getArgumentTypes()[argument]);
  auto expected = [&](const char *what) {
    return op->emitError() << "expected '" << name << "' of argument " << argument << " to be " << what << ", but got "
                           << attribute.getValue();
  };
  if (name == "tile.align") {
    bool good = isView && isPositive(attribute.getValue()) &&
                llvm::isPowerOf2_64(cast<IntegerAttr>(attribute.getValue()).getInt());
    return good ? success() : expected("a power of two in i64 on a view");
  }
  if (name == "tile.strides_by_16" || name == "tile.extent_by_16" || name == "tile.fits_32")
    return isView && isa<UnitAttr>(attribute.getValue()) ? success() : expected("a unit on a view");
  return op->emitError() << "expected an attribute of arguments that the 'tile' dialect has, but got '" << name << "'";
}

} // namespace kiln::tile
