// The reductions, scans and sorts that random programs use, one row each: how one is written, what it takes and gives,
// how it is traced, and what is known of its result.

#pragma once

#include "dialect/dsl/Tile.h"
#include "test/fuzz/facts.h"

#include <functional>
#include <span>

namespace kiln::fuzz {

struct Reduction {
  /// C++ text with $0 for the operand, $1 for the axes, and last of its arguments `, keep` where the axes stay; of
  /// scans and sorts `, true` where they go the other way.
  const char *text;
  bool (*takes)(Type);
  std::function<Tile(At, const Axes &, bool)> trace;
  Type (*gives)(Type);
  /// Facts of the result from those of the operand, of which `count` elements make one; nothing where no bound is
  /// known.
  std::function<std::optional<Facts>(Type, const Facts &, int64_t)> facts;
  /// Facts that the operand must satisfy, so that there is an error bound; nothing if every operand is allowed.
  std::function<std::optional<Facts>(Type, int64_t)> wants = {};
  /// By a function of the kernel's: along one axis, which goes.
  bool isUsers = false;
};

std::span<const Reduction> reductions();
/// Those along one axis that keep the shape.
std::span<const Reduction> scans();

} // namespace kiln::fuzz
