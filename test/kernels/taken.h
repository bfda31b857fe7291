// Which cases a machine takes, of tests whose cases are each a kernel of its own to compile.

#pragma once

#include "test/kernels/harness.h"

namespace kiln {

/// Whether it takes every case. Types and processors differ in what a kernel is compiled to, not in what it is to
/// compute: one type on one device of each pipeline takes all, and the others as many as show that.
inline bool takesAll(const Machine &machine) {
  const auto &[device, type, precision] = machine;
  return type == f32 && precision == Precision::ieee && !device.starts_with("cuda");
}

/// Of all cases those that the machine takes: else the first `few`.
template <class Case> std::vector<Case> taken(const Machine &machine, std::vector<Case> all, size_t few) {
  if (!takesAll(machine))
    all.erase(all.begin() + static_cast<ptrdiff_t>(few), all.end());
  return all;
}

} // namespace kiln
