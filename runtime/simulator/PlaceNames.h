// Names places for findings: an address by argument and element, and a byte of shared memory by its buffer.
//
//     0x55d0c0a4c3c0    is    out[3, 60] of f32[4x64]

#pragma once

#include "dialect/dsl/Types.h"

#include <cstdint>
#include <string>
#include <string_view>
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

// --- Shared memory --------------------------------------------------------------------------------------------------
//
// Names for buffers in shared memory, which findings print after an address.
//
// The author of the PTX text adds one line per buffer, in comments of the PTX or in a separate file (`kiln-sim
// --names`):
//
//     // kiln.shared KERNEL OFFSET BYTES NAME
//
// Comments stay with a text that is edited or copied, and all readers of PTX skip them. OFFSET counts bytes from the
// begin of a CTA's shared memory, static variables first. NAME is the rest of the line, such as `stage 1 of a`. Buffers
// may overlap, as they do if they are never in use together.

class SharedNames {
public:
  /// Adds the buffers of a kernel that the lines of a text name; other lines are skipped. Throws Error for a malformed
  /// line, with its number after `source`, such as "PTX line".
  void read(std::string_view text, std::string_view kernel, std::string_view source);
  /// The buffers that contain a byte: " ('a' + 128)", " ('a' + 128 or 'b')"; empty if it has no name.
  std::string at(uint32_t offset) const;

private:
  struct Part {
    int64_t offset, bytes;
    std::string name;
  };
  std::vector<Part> parts;
};

} // namespace kiln::simulator
