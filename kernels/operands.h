// Checks the operands of a plan against the texts of the kernel's registration.
//
//     const Kernel layernormKernel = kernel("layernorm", layernorm, {"x (N, C)", "gamma (C)", "mean (N) f32", …
//     const NamedExtents e = checkOperands(layernormKernel, {x, gamma, mean}); // e["C"] is 768
//     'layernorm': expected 'gamma' of shape 768, but got 512
//
// The text of an argument is its name, its extents in parentheses, its types and, after a comma, prose:
//
//     extents    `N` is one number in all arguments of a kernel; also `16`, `U + 1` and `D / 2`, from left to right
//     types      `f32`, `float or i8`, `as q` (the type of argument q) or `any`; `float`, which is the default, stands
//                for f32, bf16 and f16, the storage types of activations and parameters

#pragma once

#include "dialect/dsl/Plan.h"

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

/// The values of named extents, such as N = 8. It stores references to the names: they are literals or belong to forms.
class NamedExtents {
public:
  NamedExtents() { extents.reserve(8); } // enough for most kernels
  NamedExtents(std::initializer_list<std::pair<std::string_view, int64_t>> extents) : extents(extents) {}

  /// The number of `name`, or null.
  const int64_t *find(std::string_view name) const;
  /// As above; throws Error if there is none.
  int64_t operator[](std::string_view name) const;
  /// Sets `name`, which has no number yet.
  void set(std::string_view name, int64_t extent) { extents.emplace_back(name, extent); }

private:
  std::vector<std::pair<std::string_view, int64_t>> extents; // a few: a search is faster than a map
};

/// An argument as its registration describes it.
struct ArgumentForm {
  std::string name;
  std::vector<std::string> extents; // such as `U + 1`; empty for a scalar
  std::vector<Type> types;          // its permitted types; empty: any
  std::optional<size_t> sameAs;     // the view, counted among the views, that has the same type

  bool isView() const { return !extents.empty(); }
  /// Its shape. Throws Error for a name without a number.
  Shape shape(const NamedExtents &known) const;
  /// Its type in a problem with the storage type `storage`: the type in the text if there is exactly one, else
  /// `storage`.
  Type type(Type storage) const { return types.size() == 1 ? types.front() : storage; }
};

/// The arguments of a kernel. Throws Error if the text of a view has another form than above.
std::vector<ArgumentForm> argumentForms(const Kernel &kernel);

/// An operand of a plan; `{}` where options leave it out.
struct Operand {
  const TensorRef *tensor = nullptr;
  bool isTransposed = false; // its last two dimensions are stored in the other order
  bool isOnePart = false;    // it lacks the kernel's first dimension, the index of a part
  size_t broadcast = 0;      // number of leading dimensions whose extent may be 1 (broadcasting)

  Operand() = default;
  Operand(const TensorRef &tensor) : tensor(&tensor) {}
  Operand(const std::optional<TensorRef> &tensor) : tensor(tensor ? &*tensor : nullptr) {}
};

/// Throws Error unless each operand has the extents and one of the types that the registration of `kernel` gives its
/// view. `operands` are in the order of the kernel's views; the last ones may be left out. Errors name `plan`, or the
/// kernel if it is null. Returns the extents.
NamedExtents checkOperands(const Kernel &kernel, std::span<const Operand> operands, const char *plan = nullptr);
inline NamedExtents checkOperands(const Kernel &kernel, std::initializer_list<Operand> operands,
                                  const char *plan = nullptr) {
  return checkOperands(kernel, std::span(operands.begin(), operands.size()), plan);
}
/// Throws Error unless `tensor` has these extents. For tensors that are in no registration.
void expectShape(const char *plan, const char *operand, const TensorRef &tensor, const Shape &extents);

/// The kernel without named extents, so that none of its extents are related. A mask that several views share lives
/// from its first use to its last. In a loop that needs all registers, others are spilled then (`kiln-bench static`).
Kernel withoutNamedExtents(Kernel kernel);

/// A launch of a kernel with a config.
template <class Config>
Launch makeLaunch(const Kernel &kernel, const Config &config, const Grid &grid, std::vector<Arg> args,
                  double flops = 0) {
  return {&kernel, textOf(kernel.fields, config), grid, std::move(args), flops};
}

} // namespace kiln
