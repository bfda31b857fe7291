// Verifiers and folds of the operations on tiles with layouts.

#include "dialect/simt/SimtDialect.h"
#include "dialect/simt/WgmmaLayout.h"
#include "dialect/simt/layout/Fragments.h"
#include "dialect/simt/layout/SharedAccess.h"
#include "dialect/simt/layout/TileLayout.h"
#include "dialect/tile/TypeRules.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;

/// Parses a kind of the other dialect by `symbolize`; `what` names it in the message.
template <class Attr, class Symbolize>
static ParseResult parseKind(OpAsmParser &parser, Attr &kind, Symbolize symbolize, const char *what) {
  StringRef word;
  const SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  const auto known = symbolize(word);
  if (!known)
    return parser.emitError(loc, "expected ") << what << ", but got '" << word << "'";
  kind = Attr::get(parser.getContext(), *known);
  return success();
}

static ParseResult parseReduceKind(OpAsmParser &parser, kiln::tile::ReduceKindAttr &kind) {
  const auto symbolize = [](StringRef word) { return kiln::tile::symbolizeReduceKind(word); };
  return parseKind(parser, kind, symbolize, "sum, max, min, argmax, product, and, or or xor");
}

static void printReduceKind(OpAsmPrinter &printer, Operation *, kiln::tile::ReduceKindAttr kind) {
  printer << kiln::tile::stringifyReduceKind(kind.getValue());
}

static ParseResult parseOptionalReduceKind(OpAsmParser &parser, kiln::tile::ReduceKindAttr &kind) {
  StringRef word;
  const SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword(&word)))
    return success();
  const auto known = kiln::tile::symbolizeReduceKind(word);
  if (!known)
    return parser.emitError(loc, "expected a kind of reduction, but got '") << word << "'";
  kind = kiln::tile::ReduceKindAttr::get(parser.getContext(), *known);
  return success();
}

static void printOptionalReduceKind(OpAsmPrinter &printer, Operation *op, kiln::tile::ReduceKindAttr kind) {
  if (kind)
    printReduceKind(printer, op, kind);
}

static ParseResult parseAtomicKind(OpAsmParser &parser, kiln::tile::AtomicKindAttr &kind) {
  const auto symbolize = [](StringRef word) { return kiln::tile::symbolizeAtomicKind(word); };
  return parseKind(parser, kind, symbolize, "add, min, max, and, or, xor or exchange");
}

static void printAtomicKind(OpAsmPrinter &printer, Operation *, kiln::tile::AtomicKindAttr kind) {
  printer << kiln::tile::stringifyAtomicKind(kind.getValue());
}

using kiln::tile::parseFunction, kiln::tile::printFunction;

#define GET_OP_CLASSES
#include "dialect/simt/SimtOps.cpp.inc"

namespace kiln::simt {

LogicalResult ConvertOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), to = cast<RankedTensorType>(getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError("expected the same tile in another layout, but got ") << from << " and " << to;
  return success();
}

OpFoldResult ConvertOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<ConvertOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

/// Checks that `half` is half of `whole`, by a bit of positions that registers have.
static LogicalResult verifyHalf(Operation *op, Type whole, Type half, int64_t axis, int64_t bit) {
  const auto tile = cast<RankedTensorType>(whole), part = cast<RankedTensorType>(half);
  if (failed(tile::verifyAxis(op, axis, tile.getRank())))
    return failure();
  const auto expected = bit < 0 || bit >= 64
                            ? std::nullopt
                            : layoutOf(tile).getLayout().half(static_cast<unsigned>(axis), static_cast<unsigned>(bit));
  if (!expected)
    return op->emitOpError("expected a bit of positions along axis ")
           << axis << " that registers of " << whole << " have, but got " << bit;
  if (layoutOf(part).getLayout() != *expected || part.getElementType() != tile.getElementType())
    return op->emitOpError("expected half of ") << whole << " in layout " << expected->text() << ", but got " << half;
  return success();
}

LogicalResult HalfOp::verify() {
  if (getValue() != 0 && getValue() != 1)
    return emitOpError("expected the bit to be 0 or 1, but got ") << getValue();
  return verifyHalf(*this, getSource().getType(), getType(), getAxis(), getBit());
}

LogicalResult JoinOp::verify() { return verifyHalf(*this, getType(), getZeros().getType(), getAxis(), getBit()); }

LogicalResult ReduceOp::verify() {
  const unsigned count = getKind() == tile::ReduceKind::ArgMax ? 2 : 1;
  if (getSources().size() != count || getResults().size() != count)
    return emitOpError("expected ") << count << " sources and results, but got " << getSources().size() << " and "
                                    << getResults().size();
  auto source = cast<RankedTensorType>(getSources()[0].getType());
  if (count == 2 && !source.getElementType().isInteger())
    return emitOpError("expected integers that order as the elements do, but got ") << source.getElementType();
  const int64_t axis = getAxis();
  if (failed(tile::verifyAxis(*this, axis, source.getRank())))
    return failure();
  for (auto [from, to] : llvm::zip(getSources(), getResults())) {
    auto type = cast<RankedTensorType>(to.getType());
    SmallVector<int64_t> rest(cast<RankedTensorType>(from.getType()).getShape());
    if (type.getRank() == source.getRank())
      rest[axis] = type.getDimSize(axis);
    if (type.getShape() != ArrayRef<int64_t>(rest) || getElementTypeOrSelf(from) != type.getElementType())
      return emitOpError("expected a result like its source except along the axis, but got ")
             << from.getType() << " and " << type;
  }
  return success();
}

LogicalResult BufferOp::verify() {
  auto type = cast<MemRefType>(getType());
  if (!type.hasStaticShape() || !type.getLayout().isIdentity())
    return emitOpError("expected a buffer of a known number of bytes, but got ") << type;
  if (getOffsetAttr() && getOffsetAttr().getInt() < 0)
    return emitOpError("expected an offset from 0, but got ") << getOffsetAttr().getInt();
  return success();
}

/// Verifies that the buffer contains the tile's elements, without the layout's padding.
static LogicalResult verifyPlace(Operation *op, RankedTensorType tile, MemRefType buffer, ArrayRef<int64_t> strides) {
  if (static_cast<int64_t>(strides.size()) != tile.getRank())
    return op->emitOpError("expected a stride for each of ")
           << tile.getRank() << " dimensions, but got " << strides.size();
  const int64_t bytes = std::max(1u, tile.getElementTypeBitWidth() / 8);
  int64_t end = bytes;
  for (auto [extent, stride] : llvm::zip(tile.getShape(), strides)) {
    if (stride < 0 || stride % bytes != 0)
      return op->emitOpError("expected strides that are multiples of ") << bytes << " bytes, but got " << stride;
    end += (extent - 1) * stride;
  }
  if (end > buffer.getDimSize(0))
    return op->emitOpError("expected a buffer of at least ") << end << " bytes, but got " << buffer.getDimSize(0);
  return success();
}

/// Verifies that the shared-memory layout is for the tile, is inside the buffer, and can be moved by these
/// instructions.
static LogicalResult verifySharedLayout(Operation *op, RankedTensorType tile, MemRefType buffer,
                                        SharedLayoutAttr sharedLayout, Movement movement) {
  if (sharedLayout.getShape() != tile.getShape() || sharedLayout.getElement() != tile.getElementType())
    return op->emitOpError("expected a shared-memory layout of ") << tile << ", but got " << sharedLayout;
  if (sharedLayout.getBytes() > buffer.getDimSize(0))
    return op->emitOpError("expected a buffer of at least ")
           << sharedLayout.getBytes() << " bytes, but got " << buffer.getDimSize(0);
  const TileLayout layout = simt::layoutOf(tile).getLayout();
  if (movement != Movement::Vector &&
      !matrixAccess(layout, sharedLayout.getMap(), sharedLayout.getBits(), static_cast<SharedOp>(movement)))
    return op->emitOpError("expected a shared-memory layout whose ")
           << stringifyMovement(movement) << " matrices fit the layout's lanes";
  return success();
}

template <class OpTy> static LogicalResult verifyShared(OpTy op, Value value) {
  const auto tile = cast<RankedTensorType>(value.getType());
  const auto buffer = cast<MemRefType>(op.getBuffer().getType());
  if (op.getStrides().has_value() == op.getSharedLayout().has_value())
    return op.emitOpError("expected either strides or a shared-memory layout");
  return op.getStrides() ? verifyPlace(op, tile, buffer, *op.getStrides())
                         : verifySharedLayout(op, tile, buffer, *op.getSharedLayout(), *op.getMovement());
}

/// `[n, s]` or `[n, s, d]`: n and d below s.
static LogicalResult verifySlot(Operation *op, ArrayRef<int64_t> slot) {
  const bool hasDistance = slot.size() == 3 && slot[2] >= slot[0] && slot[2] < slot[1];
  if ((slot.size() == 2 || hasDistance) && slot[0] >= 0 && slot[0] < slot[1])
    return success();
  return op->emitOpError("expected a slot [n, s] with n from 0 to s - 1, but got [") << slot << "]";
}

LogicalResult FetchOp::verify() {
  const SharedLayoutAttr sharedLayout = getSharedLayout();
  if (getLayout().getShape() != sharedLayout.getShape())
    return emitOpError("expected a layout of ") << sharedLayout << ", but got " << getLayout();
  if (static_cast<int64_t>(getOffsets().size()) != cast<MemRefType>(getView().getType()).getRank() ||
      getOffsets().size() != sharedLayout.getShape().size())
    return emitOpError("expected an offset for each of ")
           << sharedLayout.getShape().size() << " dimensions, but got " << getOffsets().size();
  const int64_t bytes = getVector() * sharedLayout.getBits() / 8;
  const SharedAccess access = vectorAccess(getLayout().getLayout(), sharedLayout.getMap(), sharedLayout.getBits());
  if ((bytes != 4 && bytes != 8 && bytes != 16) || getVector() > uint64_t{1} << access.element.size())
    return emitOpError("expected 4, 8 or 16 bytes that lie together in a thread and in shared memory, but got ")
           << bytes;
  return verifySlot(*this, getSlot());
}

/// Verifies that the tiles have one layout that can be scanned, and that the buffer has room for the totals.
template <class OpTy> static LogicalResult verifyScan(OpTy op) {
  if (op.getSources().empty() || !llvm::equal(op.getSources().getTypes(), op.getResultTypes()))
    return op.emitOpError("expected results of the types of its tiles, at least one");
  if (op.getKind().has_value() == !op.getBy().empty())
    return op.emitOpError("expected either a kind or a function");
  const LayoutAttr layout = layoutOf(op.getSources()[0]);
  for (const Value source : op.getSources())
    if (layoutOf(source) != layout)
      return op.emitOpError("expected tiles of one layout, but got ") << layout << " and " << layoutOf(source);
  if (failed(tile::verifyAxis(op, op.getAxis(), layout.getLayout().rank())))
    return failure();
  const auto axis = static_cast<unsigned>(op.getAxis());
  const auto plan = planScan(layout.getLayout(), axis);
  if (!plan)
    return op.emitOpError("expected a layout whose warps hold neighbours along the axis, but got ") << layout;
  if (!op.getBuffer())
    return success();
  SmallVector<int64_t> bytes;
  for (const Value source : op.getSources())
    bytes.push_back(std::max(1u, getElementTypeOrSelf(source.getType()).getIntOrFloatBitWidth() / 8));
  const int64_t needed = plan->offsets(bytes).back();
  if (const int64_t size = cast<MemRefType>(op.getBuffer().getType()).getDimSize(0); size < needed)
    return op.emitOpError("expected a buffer of at least ") << needed << " bytes, but got " << size;
  return success();
}

LogicalResult ScanOp::verify() { return verifyScan(*this); }
LogicalResult CarryOp::verify() { return verifyScan(*this); }

LogicalResult WriteOp::verify() { return verifyShared(*this, getValue()); }
LogicalResult ReadOp::verify() {
  if (getSlot() && failed(verifySlot(*this, *getSlot())))
    return failure();
  return verifyShared(*this, getResult());
}

LogicalResult MultiplyOp::verify() {
  const auto acc = cast<RankedTensorType>(getType());
  const auto extentsOf = [](SharedLayoutAttr sharedLayout, bool isTransposed) {
    SmallVector<int64_t> extents(sharedLayout.getShape());
    if (isTransposed)
      std::reverse(extents.begin(), extents.end());
    return extents;
  };
  const auto left = extentsOf(getLeftLayout(), getLeftTransposed()),
             right = extentsOf(getRightLayout(), getRightTransposed());
  if (left.size() != 2 || right.size() != 2 || acc.getRank() != 2 || left[1] != right[0] ||
      left[0] != acc.getDimSize(0) || right[1] != acc.getDimSize(1) ||
      getLeftLayout().getElement() != getRightLayout().getElement())
    return emitOpError("expected matrices whose product is ")
           << acc << ", but got " << getLeftLayout() << " and " << getRightLayout();
  if (!matrixIn(getLeftLayout(), getLeftTransposed() ? 1 : 0, 64) ||
      !matrixIn(getRightLayout(), getRightTransposed() ? 0 : 1, right[1]))
    return emitOpError("expected shared-memory layouts that tensor cores can read, but got ")
           << getLeftLayout() << " and " << getRightLayout();
  const TileLayout layout = layoutOf(acc).getLayout();
  if (layout.numWarps() % 4 != 0 || layout.shape()[0].core() < 16 * int64_t{layout.numWarps()} ||
      layout != wgmmaAcc(left[0], right[1], layout.numWarps()))
    return emitOpError("expected accumulators of 64 rows a group of four warps, but got ") << acc;
  return verifySlot(*this, getSlot());
}

LogicalResult MultiplyRowsOp::verify() {
  const auto acc = cast<RankedTensorType>(getType()), left = cast<RankedTensorType>(getLeft().getType());
  const SharedLayoutAttr sharedLayout = getRightLayout();
  if (getAcc() && getAcc().getType() != acc)
    return emitOpError("expected accumulators of one type, but got ") << getAcc().getType() << " and " << acc;
  const unsigned outer = getRightTransposed() ? 0 : 1;
  const ArrayRef<int64_t> right = sharedLayout.getShape();
  if (right.size() != 2 || acc.getRank() != 2 || left.getRank() != 2 || left.getDimSize(1) != right[1 - outer] ||
      left.getDimSize(0) != acc.getDimSize(0) || right[outer] != acc.getDimSize(1) ||
      left.getElementType() != sharedLayout.getElement())
    return emitOpError("expected matrices whose product is ") << acc << ", but got " << left << " and " << sharedLayout;
  if (!matrixIn(sharedLayout, outer, right[outer]))
    return emitOpError("expected a shared-memory layout that tensor cores can read, but got ") << sharedLayout;
  const TileLayout layout = layoutOf(acc).getLayout();
  if (layout.numWarps() % 4 != 0 || layout.shape()[0].core() < 16 * int64_t{layout.numWarps()} ||
      layout != wgmmaAcc(acc.getDimSize(0), acc.getDimSize(1), layout.numWarps()))
    return emitOpError("expected accumulators of 64 rows a group of four warps, but got ") << acc;
  const int64_t K = left.getDimSize(1);
  if (layoutOf(left).getLayout() != mmaOperand(layout, MmaOperand::A, K, *mmaShapeFor(sharedLayout.getBits(), K)))
    return emitOpError("expected the left operand of these accumulators, but got ") << left;
  return verifySlot(*this, getSlot());
}

LogicalResult PickOp::verify() {
  const AffineMap place = getPlace();
  const int64_t rank = cast<RankedTensorType>(getType()).getRank();
  if (place.getNumDims() != rank || place.getNumSymbols() != 0 || place.getNumResults() != 1)
    return emitOpError("expected a map from ") << rank << " dimensions to a byte, but got " << getPlaceAttr();
  return success();
}

} // namespace kiln::simt
