// A fast hash that finds damage: XXH3 of 64 bits, several bytes a cycle. Not one that an attacker cannot meet.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

/// XXH3 (64 bits, seed 0) of `bytes`, as 16 hexadecimal digits: what `xxhsum -H3` prints.
std::string checksum(std::string_view bytes);

} // namespace kiln
