// C++ declarations of the `tile` dialect, generated from the .td files of this folder.

#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace kiln::tile {

/// The resource to which `print`, `check` and `assume` write. It keeps them in program order, and from being removed.
struct ConsoleResource : mlir::SideEffects::Resource::Base<ConsoleResource> {
  llvm::StringRef getName() final { return "console"; }
};

/// Shape of a tile; empty for a scalar.
llvm::ArrayRef<int64_t> shapeOf(mlir::Type type);

/// `64x32`, or `scalar`: a shape as error messages write it.
std::string shapeText(mlir::Type type);

/// The type of a mask for a tile: i1 of its shape, and its encoding.
mlir::Type maskLike(mlir::Type tile);

/// The assembly format of an operation's combine function: `by (%a: f32, %b: f32) { … }`, or nothing if the operation
/// combines by a kind. It is `custom<Function>` in assembly formats.
mlir::ParseResult parseFunction(mlir::OpAsmParser &parser, mlir::Region &function);
void printFunction(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::Region &function);

} // namespace kiln::tile

#include "dialect/tile/TileOpsEnums.h.inc"

#include "dialect/tile/Interfaces.h.inc"
#include "dialect/tile/TileOpsDialect.h.inc"
#define GET_OP_CLASSES
#include "dialect/tile/TileOps.h.inc"

namespace kiln::tile {

/// The extent of a view along `axis` (i64), as DimOp's folder simplifies it: a constant, or that of another view which
/// is equal.
mlir::Value createDim(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value view, int64_t axis);

/// The value of an out-of-bounds element, of type `element`.
mlir::TypedAttr paddingOf(Padding padding, mlir::Type element);

/// The accuracy of `op`, a function of `math` or an `arith.divf`: its `tile.accuracy`, or `Full` without the attribute.
Accuracy accuracyOf(mlir::Operation *op);
void setAccuracy(mlir::Operation *op, Accuracy accuracy);

} // namespace kiln::tile
