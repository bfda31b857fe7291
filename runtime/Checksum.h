// A fast hash that detects damage: XXH3 of 64 bits, several bytes per cycle. It does not resist attackers.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

/// XXH3 (64 bits, seed 0) of `bytes` as 16 hexadecimal digits, as `xxhsum -H3` prints it.
std::string checksum(std::string_view bytes);

} // namespace kiln
