// Hash tables with open addressing.

#include "models/tokens/token_tables.h"

#include <bit>
#include <cstring>

namespace kiln {

uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

MergeTable::MergeTable(const std::vector<Merge> &merges) : slots(std::bit_ceil(2 * merges.size() + 2)) {
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const uint64_t pair = packPair(merges[rank].left, merges[rank].right);
    size_t at = mixed(pair) & (slots.size() - 1);
    while (slots[at].rank != none && slots[at].pair != pair)
      at = (at + 1) & (slots.size() - 1);
    if (slots[at].rank == none) // keep the lower of two ranks
      slots[at] = {pair, static_cast<uint32_t>(rank)};
  }
}

uint32_t MergeTable::rank(int32_t left, int32_t right) const {
  const uint64_t pair = packPair(left, right);
  size_t at = mixed(pair) & (slots.size() - 1);
  while (slots[at].rank != none && slots[at].pair != pair)
    at = (at + 1) & (slots.size() - 1);
  return slots[at].rank;
}

uint64_t hashOfPiece(std::string_view bytes) {
  uint64_t hash = bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = mixed(hash ^ word);
  }
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return mixed(hash ^ word);
}

} // namespace kiln
