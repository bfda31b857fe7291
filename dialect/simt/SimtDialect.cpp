// Registration of the `simt` dialect, and the attributes that record decisions of passes.

#include "dialect/simt/SimtDialect.h"

#include "dialect/tile/TileDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialect/simt/SimtOpsEnums.cpp.inc"

#include "dialect/simt/SimtOpsDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/simt/SimtOpsAttributes.cpp.inc"

namespace kiln::simt {

void SimtDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/simt/SimtOpsAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/simt/SimtOps.cpp.inc"
      >();
}

LayoutAttr layoutOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : LayoutAttr();
}

RankedTensorType withLayout(Type tile, LayoutAttr layout) {
  auto tensor = cast<RankedTensorType>(tile);
  return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), layout);
}

/// A load cannot release, and a store cannot acquire; ordered accesses are strong.
static LogicalResult verifyOrder(Operation *op, Attribute value) {
  const auto order = dyn_cast<StringAttr>(value);
  auto load = dyn_cast<LoadOp>(op);
  auto store = dyn_cast<StoreOp>(op);
  const bool isAtomic = isa<AtomicRmwOp, AtomicCasOp>(op);
  if ((load && load.getStrong() && order == "acquire") || (store && store.getStrong() && order == "release") ||
      (isAtomic && order && llvm::is_contained({"acquire", "release", "acq_rel"}, order.getValue())))
    return success();
  return op->emitError()
         << "expected 'simt.order' to be acquire on a strong load, release on a strong store, or acquire, "
            "release or acq_rel on an atomic, but got "
         << value;
}

/// The i64 of an attribute; 0 without one.
static int64_t numberOf(Operation *op, StringRef name) {
  const auto number = op ? op->getAttrOfType<IntegerAttr>(name) : IntegerAttr();
  return number && number.getType().isInteger(64) ? number.getInt() : 0;
}

/// simt.layout        a layout, on an operation of `tile` that it is chosen for      (gpu-coalesce-accesses, …)
/// simt.vector        i64 from 1, an access: elements that a thread moves at once    (gpu-coalesce-accesses)
/// simt.ragged        unit, an access: the view may end within a vector              (gpu-coalesce-accesses)
/// simt.bitonic       unit, a sort of lines that ascend and then descend             (gpu-pad-sorts)
/// simt.mma           unit, a product that the tensor core computes                  (gpu-select-instructions)
/// simt.wgmma         unit, a product that warpgroups compute if both operands, or
///                    the right one, are copied to shared memory ahead               (gpu-select-instructions)
/// simt.chained       unit, a product with its terms in the order of another's
///                    accumulator, from which its left operand comes                 (gpu-select-instructions)
/// simt.slots         i64 from 2, a loop: slots of the rings of its tiles            (gpu-schedule-copies)
/// simt.distance      i64 from 1, below simt.slots, a loop: iterations that copies
///                    are ahead of their reads                                       (gpu-schedule-copies)
/// simt.next_tile     unit, a loop in a loop over tiles: the next tile's first copies
///                    begin when this one's loop ends                                (gpu-schedule-copies)
/// simt.engine        a string, a load: the instruction that copies its tile         (gpu-schedule-copies)
/// simt.slot          a layout in shared memory, a load: of its tile in a slot       (gpu-schedule-copies)
/// simt.copy_layout   a layout, a load: the thread of each element's copy            (gpu-schedule-copies)
/// simt.copy_vector   i64 from 1, a load: elements that one copy moves               (gpu-schedule-copies)
/// simt.copy_whole    unit, a load: they are in bounds or out of bounds together     (gpu-schedule-copies)
/// simt.from_slots    "both" or "right", a product: the operands that it reads from
///                    their slots                                                    (gpu-schedule-copies)
/// simt.runs_on       unit, such a product: it may still run when the next iteration
///                    begins, and reads a slot of its own                            (gpu-schedule-copies)
/// simt.ahead         unit, a load of a tile that the loop before it does not use:
///                    it moves in front of the loop                                  (gpu-schedule-copies)
/// simt.why           a string, a load: why its tile is not copied ahead             (gpu-schedule-copies)
/// simt.order         acquire, release or acq_rel, a strong access or an atomic      (gpu-distribute)
/// simt.fenced        unit, an atomic that a fence after it orders                   (gpu-distribute)
/// simt.shared_bytes  i64 from 0, a function                                         (gpu-allocate-shared)
/// simt.shared_parts  strings, a function: "offset bytes file:line" of each buffer   (gpu-allocate-shared)
LogicalResult SimtDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  const StringRef name = attribute.getName();
  const Attribute value = attribute.getValue();
  const auto expect = [&](bool holds, const char *wanted) -> LogicalResult {
    if (holds)
      return success();
    return op->emitError() << "expected '" << name << "' to be " << wanted << ", but got " << value;
  };
  const auto isNumber = [&](int64_t least) {
    auto number = dyn_cast<IntegerAttr>(value);
    return number && number.getType().isInteger(64) && number.getInt() >= least;
  };
  const bool isUnit = isa<UnitAttr>(value);
  if (name == "simt.layout")
    return expect(isa<LayoutAttr>(value), "a layout");
  if (name == "simt.vector")
    return expect(isNumber(1), "an i64 from 1");
  if (name == "simt.ragged")
    return expect(isa<tile::AccessOp>(op) && isUnit, "a unit on an access of a view");
  if (name == "simt.mma" || name == "simt.wgmma" || name == "simt.chained")
    return expect(isa<tile::DotOp>(op) && isUnit, "a unit on a 'tile.dot'");
  if (name == "simt.bitonic")
    return expect(isa<tile::SortOp>(op) && isUnit, "a unit on a 'tile.sort'");
  Operation *const around = op->getParentOp();
  const int64_t slots = numberOf(around, "simt.slots");
  const bool isLoop = isa<scf::ForOp>(op);
  if (name == "simt.slots")
    return expect(isLoop && isNumber(2) && op->hasAttr("simt.distance"),
                  "an i64 from 2 on an 'scf.for' with 'simt.distance'");
  if (name == "simt.distance")
    return expect(isLoop && isNumber(1) && op->hasAttr("simt.slots") &&
                      (numberOf(op, "simt.slots") < 2 || numberOf(op, name) < numberOf(op, "simt.slots")),
                  "an i64 from 1 on an 'scf.for' with more 'simt.slots'");
  if (name == "simt.next_tile")
    return expect(isLoop && isUnit && op->hasAttr("simt.slots") && isa<scf::ForOp>(around),
                  "a unit on an 'scf.for' with 'simt.slots', inside of another 'scf.for'");
  auto load = dyn_cast<tile::LoadOp>(op);
  const bool isCopied = load && slots > 0 && op->hasAttr("simt.engine");
  if (name == "simt.engine")
    return expect(isCopied && isa<StringAttr>(value) && op->hasAttr("simt.slot") && op->hasAttr("simt.copy_layout") &&
                      op->hasAttr("simt.copy_vector"),
                  "a string on a 'tile.load' with 'simt.slot', 'simt.copy_layout' and 'simt.copy_vector'");
  if (name == "simt.slot") {
    const auto slot = dyn_cast<SharedLayoutAttr>(value);
    return expect(isCopied && slot && slot.getShape() == load.getType().getShape() &&
                      slot.getElement() == load.getType().getElementType(),
                  "a shared-memory layout of the tile of a 'tile.load' with 'simt.engine'");
  }
  if (name == "simt.copy_layout") {
    const auto layout = dyn_cast<LayoutAttr>(value);
    return expect(isCopied && layout && layout.getShape() == load.getType().getShape(),
                  "a layout of the tile of a 'tile.load' with 'simt.engine', in a loop with 'simt.slots'");
  }
  if (name == "simt.copy_vector")
    return expect(isCopied && isNumber(1), "an i64 from 1 on a 'tile.load' with 'simt.engine'");
  if (name == "simt.copy_whole")
    return expect(isCopied && isUnit, "a unit on a 'tile.load' with 'simt.engine'");
  if (name == "simt.from_slots")
    return expect(
        op->hasAttr("simt.wgmma") && slots > 0 &&
            (value == StringAttr::get(op->getContext(), "both") || value == StringAttr::get(op->getContext(), "right")),
        "\"both\" or \"right\" on a 'tile.dot' with 'simt.wgmma', in a loop with 'simt.slots'");
  if (name == "simt.runs_on")
    return expect(op->hasAttr("simt.from_slots") && isUnit && numberOf(around, "simt.distance") < slots - 1,
                  "a unit on a 'tile.dot' with 'simt.from_slots', in a loop with a 'simt.distance' of at most "
                  "'simt.slots' - 2");
  if (name == "simt.ahead")
    return expect(isa<tile::LoadOp>(op) && isUnit, "a unit on a 'tile.load'");
  if (name == "simt.why")
    return expect(isa<tile::LoadOp>(op) && isa<StringAttr>(value), "a string on a 'tile.load'");
  if (name == "simt.order")
    return verifyOrder(op, value);
  if (name == "simt.fenced")
    return expect(isa<AtomicRmwOp>(op) && isUnit, "a unit on a 'simt.atomic_rmw'");
  if (name == "simt.shared_bytes")
    return expect(isa<FunctionOpInterface>(op) && isNumber(0), "an i64 from 0 on a function");
  if (name == "simt.shared_parts") {
    const auto parts = dyn_cast<ArrayAttr>(value);
    return expect(isa<FunctionOpInterface>(op) && parts && llvm::all_of(parts, llvm::IsaPred<StringAttr>),
                  "strings on a function");
  }
  return op->emitError() << "expected an attribute that the 'simt' dialect has, but got '" << name << "'";
}

} // namespace kiln::simt
