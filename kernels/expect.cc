// Checks of plans' arguments, and their error messages.

#include "kernels/expect.h"

#include <algorithm>

namespace kiln {

/// Throws the error of all checks.
[[noreturn]] static void fail(const char *plan, const char *operand, const std::string &expected,
                              const std::string &got) {
  throw Error("'" + std::string(plan) + "': expected '" + operand + "' " + expected + ", but got " + got);
}

void expectShape(const char *plan, const char *operand, const TensorRef &tensor, const Shape &extents) {
  if (tensor.extents != extents)
    fail(plan, operand, "of shape " + textOf(extents), textOf(tensor.extents));
}

void expectRank(const char *plan, const char *operand, const TensorRef &tensor, int rank) {
  if (tensor.rank() != rank)
    fail(plan, operand, "of rank " + std::to_string(rank), textOf(tensor.extents));
}

void expectType(const char *plan, const char *operand, const TensorRef &tensor, std::initializer_list<Type> types) {
  if (std::find(types.begin(), types.end(), tensor.type) != types.end())
    return;
  std::string names;
  for (const Type type : types)
    names += (names.empty() ? "" : " or ") + std::string(nameOf(type));
  fail(plan, operand, "of type " + names, nameOf(tensor.type));
}

void expectFloat(const char *plan, const char *operand, const TensorRef &tensor) {
  expectType(plan, operand, tensor, {f32, bf16, f16});
}

} // namespace kiln
