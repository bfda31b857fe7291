// Merges by the pair that they join, and the hashes that tables of tokens use.

#pragma once

#include "models/tokens/vocabulary.h"

namespace kiln {

/// Spreads a number over 64 bits: the finaliser of MurmurHash3.
uint64_t mixed(uint64_t number);
/// A hash of a piece's bytes, 8 at a time.
uint64_t hashOfPiece(std::string_view bytes);

/// Two tokens as one number.
inline uint64_t pairOf(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

/// The merges, looked up by their pair.
class MergeTable {
public:
  explicit MergeTable(const std::vector<Merge> &merges);
  /// The rank of the pair; `none` where it is not merged.
  static constexpr uint32_t none = ~0u;
  uint32_t rank(int32_t left, int32_t right) const;

private:
  struct Slot {
    uint64_t pair = ~uint64_t{0};
    uint32_t rank = none;
  };
  std::vector<Slot> slots; // a power of two of them, half full at most
};

} // namespace kiln
