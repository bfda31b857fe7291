// The assembly format of an operation's combine function: `by (%a: f32, %b: f32) { … }`, or nothing if the operation
// combines by a kind. It is `custom<Function>` in assembly formats.

#pragma once

#include "mlir/IR/OpImplementation.h"

namespace kiln::tile {

inline mlir::ParseResult parseFunction(mlir::OpAsmParser &parser, mlir::Region &function) {
  if (failed(parser.parseOptionalKeyword("by")))
    return mlir::success();
  llvm::SmallVector<mlir::OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, mlir::OpAsmParser::Delimiter::Paren, /*allowType=*/true))
    return mlir::failure();
  return parser.parseRegion(function, arguments);
}

inline void printFunction(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::Region &function) {
  if (function.empty())
    return;
  printer << " by (";
  llvm::interleaveComma(function.getArguments(), printer,
                        [&](mlir::BlockArgument argument) { printer.printRegionArgument(argument); });
  printer << ") ";
  printer.printRegion(function, /*printEntryBlockArgs=*/false);
}

} // namespace kiln::tile
