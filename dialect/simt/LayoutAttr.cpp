// The layout attribute: a TileLayout that MLIR stores, compares and prints.

#include "dialect/simt/SimtDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace kiln::simt {

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

} // namespace kiln::simt
