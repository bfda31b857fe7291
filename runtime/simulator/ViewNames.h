// Names of elements in findings: which argument of a launch, and which of its elements, an address is.
//
//     0x55d0c0a4c3c0    is    out[3, 60] of f32[4x64]

#pragma once

#include "dialect/dsl/Types.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::simulator {

/// The memory of a view argument; strides count elements.
struct NamedView {
  std::string name;
  Type type = Type::f32;
  uint64_t data = 0;
  Shape extents, strides;
};

/// The views of a launch.
class ViewNames {
public:
  void add(NamedView view) { views.push_back(std::move(view)); }
  /// The address with its element, `0x55d0c0a4c3c0 (out[3, 60] of f32[4x64])`, in every view that has it, because an
  /// array may be two arguments: `(x[3] of f32[64], also out[3] of f32[64])`. The address alone if no view has it.
  std::string textOf(uint64_t address) const;
  /// As textOf(), for an address that is known to be outside of all memory. It is described relative to the nearest
  /// view, by an index along its first dimension in memory: `out[4, 0] of f32[4x64]` is after the last row.
  std::string textOutside(uint64_t address) const;

private:
  std::vector<NamedView> views;
};

} // namespace kiln::simulator
