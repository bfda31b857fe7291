// What all blocks of a launch know of global memory: cells by page, made when a page is first touched, and the clocks
// of the words that threads synchronise by. Blocks run on several of the host's threads: a page is held while its cells
// are looked at, and found without holding anything.

#pragma once

#include "runtime/simulator/Cells.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace kiln::simulator {

/// Held for a few instructions at a time, by threads that ask again at once: to sleep, as a mutex does, would cost more
/// than all that it guards.
class BriefLock {
public:
  void lock() {
    for (int tries = 0; held.test_and_set(std::memory_order_acquire); ++tries)
      if (tries % 64 == 63) // its holder may have no core
        std::this_thread::yield();
  }
  void unlock() { held.clear(std::memory_order_release); }

private:
  std::atomic_flag held;
};

class GlobalShadow {
public:
  static constexpr int pageBits = 14;
  struct Page {
    /// Two readers that nothing orders are enough to find whoever writes with nothing between, mostly.
    Page() : cells(uint64_t{1} << pageBits, true, 2) {}
    Cells cells;
    BriefLock held;
  };

  /// `hasThreads`: several of the host's look at it.
  explicit GlobalShadow(bool hasThreads) : hasThreads(hasThreads) {}

  const bool hasThreads;
  /// The page of an address; it stays where it is.
  Page &pageOf(uint64_t address);
  /// Adds what a thread releases to the clock of a word.
  void publish(uint64_t address, const Others &released);
  /// Whether anything orders blocks so far.
  bool ordersBlocks() const { return anyWords; }
  /// The clock of a word.
  Others clockOf(uint64_t address) const;

private:
  /// A level of the page table, as processors have it: nine bits of a page's number pick an entry, which is made when
  /// it is first asked for and then stays.
  template <class Entry> class Level {
  public:
    Level() = default;
    Level(const Level &) = delete;
    ~Level() {
      for (const std::atomic<Entry *> &entry : entries)
        delete entry.load(std::memory_order_relaxed);
    }
    Entry &operator[](uint64_t number) {
      std::atomic<Entry *> &place = entries[number % entries.size()];
      Entry *entry = place.load(std::memory_order_acquire);
      if (entry)
        return *entry;
      auto made = std::make_unique<Entry>();
      if (place.compare_exchange_strong(entry, made.get(), std::memory_order_acq_rel))
        return *made.release();
      return *entry; // another thread was faster
    }

  private:
    std::array<std::atomic<Entry *>, 512> entries{};
  };
  Level<Level<Level<Level<Page>>>> pages; // the host's addresses have 48 bits

  mutable BriefLock wordsLock;
  std::unordered_map<uint64_t, Others> words;
  std::atomic<bool> anyWords = false;
};

} // namespace kiln::simulator
