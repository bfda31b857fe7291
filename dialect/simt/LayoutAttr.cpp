// The layout attribute: a TileLayout that MLIR stores, compares and prints; and the shared-memory layout attribute: the
// addresses of a tile's elements in shared memory.

#include "dialect/simt/SimtDialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::simt {

// --- Layouts ---------------------------------------------------------------------------------------------------------

TileLayout LayoutAttr::getLayout() const {
  const auto bases = [](ArrayRef<uint64_t> values) { return Vecs(values); };
  return TileLayout::get(getShape(), {bases(getRegisters()), bases(getLanes()), bases(getWarps()), bases(getBlocks())});
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  if (shape == getShape())
    return success();
  return emitError() << "expected a layout of the tile's extents " << shape << ", but got one of " << getShape();
}

void LayoutAttr::print(AsmPrinter &printer) const { printer << '<' << getLayout().text() << '>'; }

/// `[d1:1 d0:8 *]` after its name, appended to `text`.
static ParseResult parseBases(AsmParser &parser, StringRef name, std::string &text) {
  text += (", " + name + " [").str();
  StringRef unit;
  int64_t weight = 0;
  if (parser.parseLSquare())
    return failure();
  while (failed(parser.parseOptionalRSquare())) {
    if (succeeded(parser.parseOptionalStar()))
      text += "* ";
    else if (parser.parseKeyword(&unit) || parser.parseColon() || parser.parseInteger(weight))
      return failure();
    else
      text += (unit + ":" + Twine(weight) + " ").str();
  }
  if (text.back() == ' ')
    text.pop_back();
  text += ']';
  return success();
}

static std::string extentsText(ArrayRef<int64_t> extents) {
  return llvm::join(llvm::map_range(extents, [](int64_t extent) { return std::to_string(extent); }), "x");
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  const SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> extents, repeats;
  if (parser.parseLess() || parser.parseDimensionList(extents, /*allowDynamic=*/false, /*withTrailingX=*/false))
    return {};
  std::string text = extentsText(extents);
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name;
    if (parser.parseKeyword(&name))
      return {};
    if (name == "rep") {
      if (parser.parseDimensionList(repeats, false, false))
        return {};
      text += ", rep " + extentsText(repeats);
    } else if (parseBases(parser, name, text)) {
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  const auto layout = TileLayout::parse(text, [&](const Twine &reason) { parser.emitError(loc, reason); });
  return succeeded(layout) ? get(parser.getContext(), *layout) : LayoutAttr();
}

// --- Layouts in shared memory ----------------------------------------------------------------------------------------

static unsigned bytesOfElement(Type element) { return std::max(8u, element.getIntOrFloatBitWidth()) / 8; }

SharedLayoutAttr SharedLayoutAttr::of(RankedTensorType tile, const F2Map &offset) {
  SmallVector<uint64_t> bytes;
  for (const Vec column : offset.columns())
    bytes.push_back(column * bytesOfElement(tile.getElementType()));
  return get(tile.getContext(), tile.getShape(), tile.getElementType(), bytes);
}

unsigned SharedLayoutAttr::getBits() const { return 8 * bytesOfElement(getElement()); }

F2Map SharedLayoutAttr::getMap() const {
  Vecs columns;
  for (const uint64_t bytes : getOffsets())
    columns.push_back(bytes / bytesOfElement(getElement()));
  return {llvm::Log2_64_Ceil(static_cast<uint64_t>(getCoreBytes() / bytesOfElement(getElement()))), columns};
}

int64_t SharedLayoutAttr::getCoreBytes() const {
  uint64_t all = bytesOfElement(getElement()) - 1;
  for (const uint64_t bytes : getOffsets())
    all |= bytes;
  return static_cast<int64_t>(llvm::PowerOf2Ceil(all + 1));
}

int64_t SharedLayoutAttr::getBytes() const { return TileShape(getShape()).repeats() * getCoreBytes(); }

LogicalResult SharedLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape,
                                       Type element, ArrayRef<uint64_t> offsets) {
  if (shape.empty() || llvm::any_of(shape, [](int64_t extent) { return extent < 1; }))
    return emitError() << "expected extents from 1, but got " << shape;
  if (!element.isIntOrFloat())
    return emitError() << "expected the type of an element, but got " << element;
  const unsigned bits = TileShape(shape).coreBits();
  if (offsets.size() != bits)
    return emitError() << "expected " << bits << " offsets, one for each bit of a position, but got " << offsets.size();
  for (const uint64_t bytes : offsets)
    if (bytes % bytesOfElement(element) != 0 || bytes >> 31)
      return emitError() << "expected offsets below 2^31 that are multiples of " << bytesOfElement(element)
                         << " bytes, but got " << bytes;
  if (Span(Vecs(offsets)).rank() != offsets.size())
    return emitError() << "expected a place of its own for each element, but got offsets that depend on each other";
  return success();
}

void SharedLayoutAttr::print(AsmPrinter &printer) const {
  const TileShape tile(getShape());
  printer << '<';
  for (const int64_t extent : getShape())
    printer << extent << 'x';
  printer << getElement();
  for (unsigned dim = 0; dim < tile.rank(); ++dim) {
    printer << ", d" << dim << " [";
    llvm::interleaveComma(tile.unitsOf(dim), printer.getStream(),
                          [&](Vec unit) { printer << getOffsets()[llvm::Log2_64(unit)]; });
    printer << ']';
  }
  printer << '>';
}

Attribute SharedLayoutAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> shape;
  Type element;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element))
    return {};
  SmallVector<SmallVector<uint64_t>> lists;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const auto number = [&]() -> ParseResult { return parser.parseInteger(lists.back().emplace_back()); };
    lists.emplace_back();
    if (parser.parseComma() || parser.parseKeyword("d" + std::to_string(dim)) ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, number))
      return {};
  }
  if (parser.parseGreater())
    return {};
  SmallVector<uint64_t> offsets; // for the last dimension first, as in positions
  for (const auto &list : llvm::reverse(lists))
    llvm::append_range(offsets, list);
  const SMLoc loc = parser.getNameLoc();
  return parser.getChecked<SharedLayoutAttr>(loc, parser.getContext(), ArrayRef<int64_t>(shape), element,
                                             ArrayRef<uint64_t>(offsets));
}

} // namespace kiln::simt
