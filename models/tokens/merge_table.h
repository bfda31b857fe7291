// A hash table of merges by their pair, and the hash functions of token tables.

#pragma once

#include "models/tokens/vocabulary.h"

namespace kiln {

/// Mixes the bits of a number: the finaliser of MurmurHash3.
uint64_t mixed(uint64_t number);
/// A hash of a piece's bytes, 8 at a time.
uint64_t hashOfPiece(std::string_view bytes);

/// Two tokens as one number.
inline uint64_t pairOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

/// The merges by pair.
class MergeTable {
public:
  explicit MergeTable(const std::vector<Merge> &merges);
  /// The rank of a pair; `none` if it is not merged.
  static constexpr uint32_t none = ~0u;
  uint32_t rank(int32_t left, int32_t right) const;

private:
  struct Slot {
    uint64_t pair = ~uint64_t{0};
    uint32_t rank = none;
  };
  std::vector<Slot> slots; // a power of two of them, at most half full
};

} // namespace kiln
