// Names for parts of shared memory, which findings give beside an address.
//
// Whoever made the text says what lies where, one line a part, in comments of the PTX or in a file of its own
// (`kiln-sim --names`):
//
//     // kiln.shared KERNEL OFFSET BYTES NAME
//
// Comments stay with a text that is edited or sent to somebody, and all who read PTX skip them. OFFSET counts bytes
// from the beginning of a block's shared memory, static variables first; NAME is the rest of the line, such as `stage 1
// of a`. Parts may overlap, as buffers do that are never in use together.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::simulator {

class SharedNames {
public:
  /// Adds a kernel's parts that the lines of a text name; all other lines are skipped. Throws Error for a line that
  /// begins as these do and is none, with its number behind `source`, say "PTX line".
  void read(std::string_view text, std::string_view kernel, std::string_view source);
  /// The parts that hold a byte: " ('a' + 128)", " ('a' + 128 or 'b')"; nothing when it has no name.
  std::string at(uint32_t offset) const;

private:
  struct Part {
    int64_t offset, bytes;
    std::string name;
  };
  std::vector<Part> parts;
};

} // namespace kiln::simulator
