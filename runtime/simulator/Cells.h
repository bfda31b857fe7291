// What is known of each byte of memory: which threads wrote and read it last, whether it has a value, whether an
// asynchronous copy is on its way to it or from it.
//
// A cell stands for 4 bytes, which threads mostly access together. At the first access to a part of them it is split
// into two cells, one for each half, or four, one a byte; a store of all of them makes it whole again. Several readers
// that are not ordered among each other are a list.
//
// Rows of 16 bytes, in turn, mostly have one thing to be said of them: one lane has touched all of it, or four lanes
// that follow each other a word each, or two of them two words each, or as many as it has halves of words, or bytes,
// one of these each. Then the row has one cell, and those of its words count for nothing. Whoever wants a word's own
// cell takes the row apart; it comes together again when its words agree.

#pragma once

#include "runtime/simulator/Clock.h"

#include <array>
#include <bit>
#include <cstdlib>
#include <deque>

namespace kiln::simulator {

/// A lane of an agent, in the low bits; `allOfThem` means several or all of them.
inline constexpr int laneBits = 6;
inline constexpr uint32_t allOfThem = (1u << laneBits) - 1;

struct Cell {
  enum State : uint16_t {
    valid = 0xf,          // the bytes that have a value
    landing = 0xf0,       // the bytes that an asynchronous copy will write
    isSplit = 0x100,      // into parts, of `leaving` bytes each; nothing else holds
    manyReaders = 0x200,  // `reader` is the index of their list, `read` the latest time
    strongWrite = 0x400,  // the last write was an atomic or strong one
    strongRead = 0x800,   // all reads were
    engineWrote = 0x1000, // an asynchronous engine wrote last
    manyBlocks = 0x4000,  // several blocks have read it, of which `reader` is one
    readerMask = 0x2000,  // `reader` is a bit for each warp of the block that read it at the time `read`
    engineRead = 0x8000,  // of shared memory: an asynchronous engine is among the readers
  };
  Time written = 0, read = 0;           // 0: never
  uint32_t writer = 0, reader = 0;      // agent of the launch << laneBits | lane
  uint16_t writeLine = 0, readLine = 0; // of the PTX text; 0: beyond what these hold
  uint16_t state = 0;                   // of State
  uint16_t leaving = 0;                 // asynchronous reads under way

  /// State and `leaving`, as one number says them that is compared at once.
  static constexpr uint32_t joint(uint32_t state, uint32_t leaving) { return state | leaving << 16; }
  uint32_t joint() const { return joint(state, leaving); }
  /// Of a split cell: its parts, by their first bytes; they stay where they are.
  Cell *parts() const { return std::bit_cast<Cell *>(std::array{written, read}); }
  static Cell splitInto(Cell *parts, uint32_t bytes) {
    const auto [low, high] = std::bit_cast<std::array<Time, 2>>(parts);
    return {.written = low, .read = high, .state = isSplit, .leaving = static_cast<uint16_t>(bytes)};
  }
};
static_assert(sizeof(Cell) == 24);

/// How the lanes that touched a row's bytes differ: not at all, or by one from one word, pair of words, half of a word,
/// or byte, to the next.
enum class Spread : uint8_t { none, words, pairs, halves, bytes };

/// 16 bytes.
struct alignas(32) Row {
  Cell all; // of all words, with the first one's lanes; it has no list of readers, and is not split
  Spread writers = Spread::none, readers = Spread::none;
  bool isApart = false; // the words have cells of their own
  uint8_t unused[5] = {};
};
static_assert(sizeof(Row) == 32);

/// The cells of consecutive memory.
class Cells {
public:
  /// `bytes` of memory, uninitialised unless `hasValues`; lists hold up to `readers` readers, further ones are not
  /// kept.
  Cells(uint64_t bytes, bool hasValues, uint32_t readers);
  Cells(Cells &&) = default;

  /// A word's own cell, and those of the words behind it in the same row.
  Cell &operator[](uint64_t word) {
    Row &row = rows[word / 4];
    if (!row.isApart)
      takeApart(row);
    return cells.get()[word];
  }
  /// All words' cells, null while no row is apart; the states of those whose row is not are 0.
  Cell *words() { return cells.get(); }
  Row &row(uint64_t number) { return rows[number]; }
  /// Makes one cell of a row's four, if they agree; whether they do.
  bool bringTogether(Row &row);
  /// How many bytes each part of a split cell has: 1 or 2.
  static uint32_t partBytes(const Cell &cell) { return cell.leaving; }
  /// Splits a cell into halves (`bytes` 2) or bytes (1).
  void split(Cell &cell, uint32_t bytes);
  /// Calls function(part, its bytes as a mask of a word's first) for the parts of a split cell that the mask `bytes`
  /// has; halves are split once more where it has one byte of theirs.
  template <class Function> void forParts(Cell &cell, unsigned bytes, Function function) {
    if (partBytes(cell) == 2 && ((bytes ^ bytes >> 1) & 5))
      splitHalves(cell);
    const uint32_t width = partBytes(cell);
    const unsigned whole = (1u << width) - 1;
    for (uint32_t byte = 0; byte < 4; byte += width)
      if (bytes >> byte & whole)
        function(cell.parts()[byte], whole);
  }
  /// Makes a split cell whole; the caller sets what it holds.
  void unite(Cell &cell);
  /// The readers of a cell with manyReaders, up to the first without a time.
  Epoch *readersOf(const Cell &cell) { return lists.data() + size_t{cell.reader} * capacity; }
  uint32_t mostReaders() const { return capacity; }
  /// Turns a cell's one reader into a list.
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
  std::deque<std::array<Cell, 4>> parts; // of halves the first and the third
  std::vector<Epoch> lists;              // whose agents are agent << laneBits | lane
  std::vector<Cell *> freeParts;
  std::vector<uint32_t> freeLists;
  uint32_t capacity;
};

} // namespace kiln::simulator
