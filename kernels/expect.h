// Checks of plan arguments: one line for each operand, one wording for each error.
//
//     expectShape("layernorm", "gamma", gamma, {C});
//     'layernorm': expected 'gamma' of shape 768, but got 512

#pragma once

#include "dialect/dsl/Plan.h"

#include <initializer_list>

namespace kiln {

/// Throws Error unless `tensor` has exactly these extents.
void expectShape(const char *plan, const char *operand, const TensorRef &tensor, const Shape &extents);
/// Throws Error unless `tensor` has `rank` dimensions.
void expectRank(const char *plan, const char *operand, const TensorRef &tensor, int rank);
/// Throws Error unless the elements of `tensor` have one of these types.
void expectType(const char *plan, const char *operand, const TensorRef &tensor, std::initializer_list<Type> types);
/// Throws Error unless `tensor` is f32, bf16 or f16, the storage types of activations and parameters.
void expectFloat(const char *plan, const char *operand, const TensorRef &tensor);

} // namespace kiln
