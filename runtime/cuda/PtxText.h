// Reads facts about a module from its PTX (lowering/Abi.h) on the host. Loaded code lacks them: the texts of checks, to
// which no instruction refers, and the number of threads of a CTA.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::cuda {

class PtxText {
public:
  /// The text of a module with one kernel, from Kiln's compiler.
  explicit PtxText(std::string text) : text(std::move(text)) {}

  const std::string &whole() const { return text; }
  /// Threads of a CTA; 0 if the text does not say.
  int threads() const;
  /// The constant with this name; 0 if there is none.
  int64_t constant(std::string_view name) const;
  /// The bytes of the variable with this name, up to a zero or its end; empty if there is none.
  std::string bytes(std::string_view name) const;

private:
  std::string_view initialiserOf(std::string_view name) const;
  std::string text;
};

} // namespace kiln::cuda
