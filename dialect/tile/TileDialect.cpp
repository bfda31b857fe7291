// Registration of the `tile` dialect.

#include "dialect/tile/TileDialect.h"

#include "dialect/tile/AccessRules.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#include "dialect/tile/TileOpsEnums.cpp.inc"

#include "dialect/tile/TileOpsDialect.cpp.inc"

#include "dialect/tile/Interfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialect/tile/TileOps.cpp.inc"

namespace kiln::tile {

void TileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialect/tile/TileOps.cpp.inc"
      >();
}

Operation *TileDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

ArrayRef<int64_t> shapeOf(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor.getShape();
  if (auto memref = dyn_cast<MemRefType>(type))
    return memref.getShape();
  return {};
}

Type maskLike(Type tile) {
  auto tensor = cast<RankedTensorType>(tile);
  return RankedTensorType::get(tensor.getShape(), IntegerType::get(tile.getContext(), 1), tensor.getEncoding());
}

ParseResult parseFunction(OpAsmParser &parser, Region &function) {
  if (failed(parser.parseOptionalKeyword("by")))
    return success();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true))
    return failure();
  return parser.parseRegion(function, arguments);
}

void printFunction(OpAsmPrinter &printer, Operation *, Region &function) {
  if (function.empty())
    return;
  printer << " by (";
  llvm::interleaveComma(function.getArguments(), printer,
                        [&](BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") ";
  printer.printRegion(function, /*printEntryBlockArgs=*/false);
}

std::string shapeText(Type type) {
  std::string text;
  llvm::raw_string_ostream out(text);
  auto shape = shapeOf(type);
  if (shape.empty())
    return "scalar";
  llvm::interleave(
      shape, out,
      [&](int64_t extent) {
        if (ShapedType::isDynamic(extent))
          out << '?';
        else
          out << extent;
      },
      "x");
  return text;
}

} // namespace kiln::tile
