// What plans ask of their arguments: one line for each operand, one wording for every mistake.
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
/// The same with the storage types of activations and parameters: f32, bf16 or f16.
void expectFloat(const char *plan, const char *operand, const TensorRef &tensor);

} // namespace kiln
