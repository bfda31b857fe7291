// The elementwise functions of random programs, one row each: its text, its operands, its tracing, and the facts of its
// result.

#pragma once

#include "dialect/dsl/Tile.h"
#include "test/fuzz/facts.h"

#include <functional>
#include <span>
#include <string_view>

namespace kiln::fuzz {

struct Elementwise {
  /// C++ text with $0, $1, $2 for the operands.
  const char *text;
  int operands;
  bool (*takes)(Type);
  bool comparison; // gives bool
  std::function<Tile(std::span<const At>)> trace;
  /// Facts of the result, within its type, from those of the operands; nothing where no bound is known.
  std::function<std::optional<Facts>(Type, std::span<const Facts>)> facts;
};

std::span<const Elementwise> elementwise();
/// The row of the verb that is written so.
int elementwiseRow(std::string_view text);

} // namespace kiln::fuzz
