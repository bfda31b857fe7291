// Hash tables of a tokenizer: merges by their pair, and the tokens of pieces that were encoded before.

#pragma once

#include "models/tokens/vocabulary.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

/// Mixes the bits of a number: the finaliser of MurmurHash3.
uint64_t mixed(uint64_t number);
/// A hash of a piece's bytes, 8 at a time.
uint64_t hashOfPiece(std::string_view bytes);

/// Two tokens as one number.
inline uint64_t packPair(int32_t left, int32_t right) {
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

/// A cache of the tokens of earlier pieces. Its size fits the caches of a core; when it is full, it is cleared.
class SeenPieces {
public:
  /// The tokens of the piece; nullptr if it is new.
  const std::vector<int32_t> *find(std::string_view piece, uint64_t hash) const {
    if (slots.empty())
      return nullptr;
    for (size_t at = hash & (slots.size() - 1); slots[at].used; at = (at + 1) & (slots.size() - 1))
      if (slots[at].hash == hash && slots[at].piece == piece)
        return &slots[at].tokens;
    return nullptr;
  }
  void insert(std::string_view piece, uint64_t hash, std::span<const int32_t> tokens) {
    if (2 * (used + 1) > slots.size())
      grow();
    place({hash, std::string(piece), {tokens.begin(), tokens.end()}, true});
  }

private:
  struct Slot {
    uint64_t hash = 0;
    std::string piece;
    std::vector<int32_t> tokens;
    bool used = false;
  };
  static constexpr size_t least = 64, most = size_t{1} << 15;

  void place(Slot slot) {
    size_t at = slot.hash & (slots.size() - 1);
    while (slots[at].used)
      at = (at + 1) & (slots.size() - 1);
    slots[at] = std::move(slot);
    ++used;
  }
  void grow() {
    std::vector<Slot> old(slots.size() < most ? std::max(least, 2 * slots.size()) : most);
    old.swap(slots);
    used = 0;
    if (old.size() < most)
      for (Slot &slot : old)
        if (slot.used)
          place(std::move(slot));
  }

  std::vector<Slot> slots;
  size_t used = 0;
};

} // namespace kiln
