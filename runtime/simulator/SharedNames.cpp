// Reads and looks up names of shared memory.

#include "runtime/simulator/SharedNames.h"

#include "dialect/dsl/Types.h"
#include "lowering/Abi.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

namespace kiln::simulator {

static constexpr std::string_view beginning = abi::sharedPart;

void SharedNames::read(std::string_view text, std::string_view kernel, std::string_view source) {
  for (size_t at = text.find(beginning); at != std::string_view::npos; at = text.find(beginning, at + 1)) {
    const std::string line(text.substr(at, text.find_first_of("\r\n", at) - at));
    std::istringstream words(line.substr(beginning.size()));
    std::string of;
    Part part{};
    words >> of >> part.offset >> part.bytes >> std::ws;
    if (!std::getline(words, part.name) || part.offset < 0 || part.bytes < 1)
      throw Error(fmt::format("{} {}: expected '{}KERNEL OFFSET BYTES NAME', but got '{}'", source,
                              1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
                              beginning, line));
    if (of == kernel)
      parts.push_back(std::move(part));
  }
}

std::string SharedNames::at(uint32_t offset) const {
  std::string text;
  for (const Part &part : parts)
    if (const int64_t within = offset - part.offset; within >= 0 && within < part.bytes)
      text +=
          fmt::format("{}'{}'{}", text.empty() ? "" : " or ", part.name, within ? fmt::format(" + {}", within) : "");
  return text.empty() ? text : fmt::format(" ({})", text);
}

} // namespace kiln::simulator
