// Shadow memory of global memory, shared by all CTAs of a launch: cells by page, created at the first access, and the
// clocks of words used for synchronisation. CTAs run on several host threads. A page is locked while its cells are
// examined; looking up a page needs no lock.

#pragma once

#include "runtime/simulator/Cells.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace kiln::simulator {

/// A spin lock for a few instructions. Threads try again at once, because sleeping, as in a mutex, would cost more than
/// the guarded work.
class BriefLock {
public:
  void lock() {
    for (int tries = 0; held.test_and_set(std::memory_order_acquire); ++tries)
      if (tries % 64 == 63) // the holder may not be running
        std::this_thread::yield();
  }
  void unlock() { held.clear(std::memory_order_release); }

private:
  std::atomic_flag held;
};

/// A strong access whose scope is its block, to some of a word's bytes.
struct BlockAccess {
  uint32_t who = 0; // agent of the launch << laneBits | lane or allOfThem
  Time time = 0;
  uint16_t line = 0;
  uint8_t bytes = 0; // a mask
  bool writes = false;
};

class GlobalShadow {
public:
  static constexpr int pageBits = 14;
  struct Page {
    /// Two unordered readers suffice to find nearly every unordered write.
    Page() : cells(uint64_t{1} << pageBits, true, 2) {}
    Cells cells;
    BriefLock held;
  };

  /// `hasThreads`: several host threads use it.
  explicit GlobalShadow(bool hasThreads) : hasThreads(hasThreads) {}

  const bool hasThreads;
  /// The page of an address; it does not move.
  Page &pageOf(uint64_t address);
  /// Joins a released clock into the clock of a word.
  void publish(uint64_t address, const Others &released);
  /// Whether anything has ordered CTAs so far.
  bool ordersBlocks() const { return anyWords; }
  /// The clock of a word.
  Others clockOf(uint64_t address) const;
  /// The accesses of a word whose scope is a block. A thread that reads and replaces them holds the page.
  std::vector<BlockAccess> blockAccesses(uint64_t word) const;
  void setBlockAccesses(uint64_t word, std::vector<BlockAccess> accesses);

private:
  /// One level of a page table, as in processors: nine bits of a page number select an entry. Entries are created at
  /// the first use and never removed.
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
  Level<Level<Level<Level<Page>>>> pages; // host addresses have 48 bits

  mutable BriefLock wordsLock;
  std::unordered_map<uint64_t, Others> words;
  std::unordered_map<uint64_t, std::vector<BlockAccess>> wordsOfBlocks;
  std::atomic<bool> anyWords = false, anyBlockAccesses = false;
};

} // namespace kiln::simulator
