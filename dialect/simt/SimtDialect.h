// C++ declarations of the `simt` dialect, generated from the .td files next to this header.

#pragma once

#include "dialect/simt/layout/TileLayout.h"
#include "dialect/tile/TileDialect.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/simt/SimtOpsEnums.h.inc"

#include "dialect/simt/SimtOpsDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialect/simt/SimtOpsAttributes.h.inc"
#define GET_OP_CLASSES
#include "dialect/simt/SimtOps.h.inc"

namespace kiln::simt {

/// The layout of a tile's type; a scalar and a tile without a layout have none.
LayoutAttr layoutOf(mlir::Type type);
inline LayoutAttr layoutOf(mlir::Value value) { return layoutOf(value.getType()); }

/// The type of the tile with another layout, of the same shape.
mlir::RankedTensorType withLayout(mlir::Type tile, LayoutAttr layout);

} // namespace kiln::simt
