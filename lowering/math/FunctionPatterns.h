// Patterns that expand functions of `math` to arithmetic, for passes of every target.

#pragma once

#include "lowering/math/MathFunctions.h"

#include "mlir/IR/PatternMatch.h"

#include <functional>

namespace kiln::lowering {

/// A scalar or a vector of one dimension whose elements `isElement` accepts.
bool isScalarOrVector(mlir::Type type, llvm::function_ref<bool(mlir::Type)> isElement);

/// Emits x · 2ⁿ as an instruction of the target (MathFunctions::Scale).
using ScaleInstruction = mlir::Value (*)(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value n,
                                         mlir::Value keep);

/// Patterns for the functions of Functions.def, and remainders, of scalars and vectors of f32 and f64. `scale`, when
/// set, is used for the types that `canScale` accepts.
void addFunctionPatterns(mlir::RewritePatternSet &patterns, ScaleInstruction scale = nullptr,
                         bool (*canScale)(mlir::Type) = nullptr);

/// Removes the attribute `tile.accuracy` from all operations; no later pass reads it.
void removeAccuracies(mlir::Operation *root);

} // namespace kiln::lowering
