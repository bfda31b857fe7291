// What a module says of itself beside its code (lowering/Abi.h), read from its PTX. The host needs it: a GPU's code has
// neither the texts of checks, which nothing refers to, nor how many threads a program has.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::cuda {

class PtxText {
public:
  /// The text of a module with one kernel, as the compiler for GPUs writes it.
  explicit PtxText(std::string text) : text(std::move(text)) {}

  const std::string &whole() const { return text; }
  /// Threads of a program; 0 when the text does not say.
  int threads() const;
  /// The constant called `name`; 0 without one.
  int64_t constant(std::string_view name) const;
  /// The bytes of the variable called `name` up to a zero, or its end; empty without one.
  std::string bytes(std::string_view name) const;

private:
  std::string_view initialiserOf(std::string_view name) const;
  std::string text;
};

} // namespace kiln::cuda
