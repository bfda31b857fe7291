// Shadow memory: for each byte the last writer and reader, whether it has a value, and asynchronous copies to or from
// it. Global memory has such cells by page.
//
// A cell stands for a word of 4 bytes, because threads mostly access whole words. An access to a part of a word splits
// the cell into halves or bytes. A store of the whole word makes it whole again. Unordered readers are kept in a list.
//
// A row is 16 bytes. In the usual cases one cell describes a whole row, and the cells of its words are unused. In these
// cases one lane has accessed all of the row, or consecutive lanes have accessed one word each (or two words, half a
// word, a byte). An access to a single word splits the row into cells of words. When these agree, they are merged
// again.

#pragma once

#include "runtime/simulator/Causality.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace kiln::simulator {

/// The low bits hold the lane of an agent; `allOfThem` means several lanes or all.
inline constexpr int laneBits = 6;
inline constexpr uint32_t allOfThem = (1u << laneBits) - 1;

struct Cell {
  enum State : uint16_t {
    valid = 0xf,          // bytes that have a value
    landing = 0xf0,       // bytes that an asynchronous copy will write
    isSplit = 0x100,      // split into parts of `leaving` bytes each; no other bit applies
    manyReaders = 0x200,  // `reader` is the index of a list, `read` the latest time
    strongWrite = 0x400,  // the last write was atomic or strong
    strongRead = 0x800,   // all reads were atomic or strong
    engineWrote = 0x1000, // the last writer was an asynchronous engine
    manyBlocks = 0x4000,  // several CTAs have read it; `reader` is one of them
    readerMask = 0x2000,  // `reader` is a bit mask of the warps of the CTA that read it at time `read`
    engineRead = 0x8000,  // shared memory: an asynchronous engine is among the readers
  };
  Time written = 0, read = 0;           // 0: never
  uint32_t writer = 0, reader = 0;      // agent of the launch << laneBits | lane
  uint16_t writeLine = 0, readLine = 0; // of the PTX text; 0: too large for 16 bits
  uint16_t state = 0;                   // bits of State
  uint16_t leaving = 0;                 // asynchronous reads in flight

  /// State and `leaving` as one number, for fast comparison.
  static constexpr uint32_t joint(uint32_t state, uint32_t leaving) { return state | leaving << 16; }
  uint32_t joint() const { return joint(state, leaving); }
  /// The parts of a split cell, by their first bytes; they do not move.
  Cell *parts() const { return std::bit_cast<Cell *>(std::array{written, read}); }
  static Cell splitInto(Cell *parts, uint32_t bytes) {
    const auto [low, high] = std::bit_cast<std::array<Time, 2>>(parts);
    return {.written = low, .read = high, .state = isSplit, .leaving = static_cast<uint16_t>(bytes)};
  }
};
static_assert(sizeof(Cell) == 24);

/// The pattern of the lanes that touched a row: one lane, or consecutive lanes with one word, pair of words, half word
/// or byte each.
enum class Spread : uint8_t { none, words, pairs, halves, bytes };

/// The cell of 16 bytes.
struct alignas(32) Row {
  Cell all; // of all words, with the first lane; never split and without a list of readers
  Spread writers = Spread::none, readers = Spread::none;
  bool isApart = false; // the words have their own cells
  uint8_t unused[5] = {};
};
static_assert(sizeof(Row) == 32);

/// The cells of contiguous memory.
class Cells {
public:
  /// For `bytes` of memory, uninitialised unless `hasValues`. Lists hold at most `readers` readers.
  Cells(uint64_t bytes, bool hasValues, uint32_t readers);
  Cells(Cells &&) = default;

  /// A word's own cell; the cells of later words in its row follow it.
  Cell &operator[](uint64_t word) {
    Row &row = rows[word / 4];
    if (!row.isApart)
      takeApart(row);
    return cells.get()[word];
  }
  /// The cells of all words; null while no row is apart. Words of other rows have state 0.
  Cell *words() { return cells.get(); }
  Row &row(uint64_t number) { return rows[number]; }
  /// Merges the four cells of a row if they agree; returns whether they do.
  bool bringTogether(Row &row);
  /// The bytes of each part of a split cell: 1 or 2.
  static uint32_t partBytes(const Cell &cell) { return cell.leaving; }
  /// Splits a cell into halves (`bytes` 2) or bytes (1).
  void split(Cell &cell, uint32_t bytes);
  /// Calls function(part, mask of its bytes, as if at the begin of a word) for the parts of a split cell in the mask
  /// `bytes`. A half is split further if the mask has only one of its bytes.
  template <class Function> void forParts(Cell &cell, unsigned bytes, Function function) {
    if (partBytes(cell) == 2 && ((bytes ^ bytes >> 1) & 5))
      splitHalves(cell);
    const uint32_t width = partBytes(cell);
    const unsigned whole = (1u << width) - 1;
    for (uint32_t byte = 0; byte < 4; byte += width)
      if (bytes >> byte & whole)
        function(cell.parts()[byte], whole);
  }
  /// Makes a split cell whole; the caller sets its contents.
  void unite(Cell &cell);
  /// The readers of a cell with manyReaders, up to the first without a time.
  Epoch *readersOf(const Cell &cell) { return lists.data() + size_t{cell.reader} * capacity; }
  uint32_t maxReaders() const { return capacity; }
  /// Turns the single reader of a cell into a list.
  void listReaders(Cell &cell);
  void forgetReaders(Cell &cell);

private:
  struct Free {
    void operator()(Cell *cells) const { std::free(cells); }
  };
  void takeApart(Row &row);
  void splitHalves(Cell &cell);
  void copyPart(const Cell &from, Cell &to, uint32_t byte, uint32_t bytes);
  Cell *cellsOf(const Row &row) { return cells.get() + 4 * (&row - rows.data()); }
  std::vector<Row> rows;
  std::unique_ptr<Cell, Free> cells;     // of rows that are apart
  std::deque<std::array<Cell, 4>> parts; // halves use the first and the third
  std::vector<Epoch> lists;              // their agents are agent << laneBits | lane
  std::vector<Cell *> freeParts;
  std::vector<uint32_t> freeLists;
  uint32_t capacity;
};

// --- Global memory --------------------------------------------------------------------------------------------------
//
// It is shared by all CTAs of a launch: cells by page, created at the first access, and the
// clocks of words used for synchronisation. CTAs run on several host threads. A page is locked while its cells are
// examined; looking up a page needs no lock.

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
