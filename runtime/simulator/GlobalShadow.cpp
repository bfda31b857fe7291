// Pages, and words used for synchronisation.

#include "runtime/simulator/GlobalShadow.h"

namespace kiln::simulator {

GlobalShadow::Page &GlobalShadow::pageOf(uint64_t address) {
  const uint64_t number = address >> pageBits;
  return pages[number >> 27][number >> 18][number >> 9][number];
}

void GlobalShadow::publish(uint64_t address, const Others &released) {
  if (!released)
    return;
  const std::lock_guard lock(wordsLock);
  Others &word = words[address];
  word = join(word, released);
  anyWords = true;
}

Others GlobalShadow::clockOf(uint64_t address) const {
  if (!anyWords)
    return nullptr;
  const std::lock_guard lock(wordsLock);
  const auto at = words.find(address);
  return at == words.end() ? nullptr : at->second;
}

std::vector<BlockAccess> GlobalShadow::blockAccesses(uint64_t word) const {
  if (!anyBlockAccesses)
    return {};
  const std::lock_guard lock(wordsLock);
  const auto at = wordsOfBlocks.find(word);
  return at == wordsOfBlocks.end() ? std::vector<BlockAccess>() : at->second;
}

void GlobalShadow::setBlockAccesses(uint64_t word, std::vector<BlockAccess> accesses) {
  const std::lock_guard lock(wordsLock);
  wordsOfBlocks[word] = std::move(accesses);
  anyBlockAccesses = true;
}

} // namespace kiln::simulator
