// Two tables.

#include "runtime/simulator/GlobalShadow.h"

namespace kiln::simulator {

GlobalShadow::Page &GlobalShadow::pageOf(uint64_t address) {
  const uint64_t number = address >> pageBits;
  {
    const std::shared_lock lock(pagesMutex);
    if (const auto at = pages.find(number); at != pages.end())
      return *at->second;
  }
  const std::unique_lock lock(pagesMutex);
  std::unique_ptr<Page> &page = pages[number];
  if (!page)
    page = std::make_unique<Page>();
  return *page;
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

} // namespace kiln::simulator
