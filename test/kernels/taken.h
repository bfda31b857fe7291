// The cases that a machine runs, for tests in which each case compiles its own kernel.

#pragma once

#include "test/kernels/harness.h"

namespace kiln {

/// Whether the machine runs every case. Types and processors differ in the compiled code, not in the results: one type
/// on one device of each pipeline runs all cases, and the others run a few.
inline bool takesAll(const Machine &machine) {
  const auto &[device, type, precision] = machine;
  return type == f32 && precision == Precision::ieee && !device.starts_with("cuda");
}

/// The cases that the machine runs: all, or the first `few`.
template <class Case> std::vector<Case> taken(const Machine &machine, std::vector<Case> all, size_t few) {
  if (!takesAll(machine))
    all.erase(all.begin() + static_cast<ptrdiff_t>(few), all.end());
  return all;
}

} // namespace kiln
