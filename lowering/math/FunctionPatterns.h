// Patterns that expand functions of `math` to arithmetic, for passes of every target.

#pragma once

#include "lowering/math/MathFunctions.h"

#include "mlir/IR/PatternMatch.h"

#include <functional>

namespace kiln::lowering {

/// A scalar or a vector of one dimension whose elements `isElement` accepts.
bool isScalarOrVector(mlir::Type type, llvm::function_ref<bool(mlir::Type)> isElement);

/// x · 2ⁿ by an instruction of the machine's, as MathFunctions::Scale has it.
using ScaleInstruction = mlir::Value (*)(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value n,
                                         mlir::Value keep);

/// Patterns for the functions of Functions.def, and remainders, of scalars and vectors of f32 and f64. `scale`, when
/// set, is used for the types that `canScale` accepts.
void addFunctionPatterns(mlir::RewritePatternSet &patterns, ScaleInstruction scale = nullptr,
                         bool (*canScale)(mlir::Type) = nullptr);

/// Takes `tile.accuracy` off what is still there: it means nothing from here on.
void takeAccuracies(mlir::Operation *root);

} // namespace kiln::lowering
