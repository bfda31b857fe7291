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

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::simulator {

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
