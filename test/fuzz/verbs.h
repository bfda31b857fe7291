// The functions of random programs, one row each: elementwise ones, and reductions, scans and sorts; their text, their
// operands, their tracing, and the facts of their results.

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

struct Reduction {
  /// C++ text with $0 for the operand, $1 for the axes, and last of its arguments `, keep` if the axes stay. For scans
  /// and sorts it is `, true` if they are reversed.
  const char *text;
  bool (*takes)(Type);
  std::function<Tile(At, const Axes &, bool)> trace;
  Type (*gives)(Type);
  /// Facts of the result from those of the operand, of which `count` elements are combined; nothing if no bound is
  /// known.
  std::function<std::optional<Facts>(Type, const Facts &, int64_t)> facts;
  /// Facts that the operand must satisfy, so that there is an error bound; nothing if every operand is allowed.
  std::function<std::optional<Facts>(Type, int64_t)> wants = {};
  /// With a function of the kernel: along one axis, which is removed.
  bool isUsers = false;
};

std::span<const Reduction> reductions();
/// Those along one axis that keep the shape.
std::span<const Reduction> scans();

} // namespace kiln::fuzz
