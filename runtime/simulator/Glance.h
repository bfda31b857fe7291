// The usual accesses, judged at a glance: nothing is under way there, and it was last touched by this
// lane or before what all lanes of the warp have seen. Of all others nothing is noted: Shadow looks at them closely.

#pragma once

#include "runtime/simulator/Cells.h"
#include "runtime/simulator/Program.h"

namespace kiln::simulator {

/// Memory of which the cells lie together: a block's shared memory, or a page.
struct Window {
  Cells &cells;
  const char *begin;
  uint64_t bytes;
};

/// What a warp knows, and how it is about to access memory.
struct Glance {
  const Time *seen;
  const Time now;
  const uint32_t first, agents; // of the block
  const uint16_t line;
  const uint16_t landing; // the state's bits that a write sets
  const bool together;
  const bool blocksAreApart; // nothing has ordered blocks so far
  const bool writes;
  Time floor = 0; // of memory that only this block has

  /// A word, by `self`; whether it is noted.
  bool word(Cells &cells, Cell &cell, uint32_t self) const;
  /// A read of a row that says the same of its words; `self` reads the first.
  bool readRow(Row &row, uint32_t self, Spread spread) const;
  /// Of `lanes`, lanes of `agent`, each accesses `bytes` bytes, 1, 2, 4, 8 or 16, at a multiple of that; the lanes that
  /// are left from the first one on of which not all is noted, or which lies elsewhere.
  Mask lanes(const Window &window, const std::array<char *, lanesOfWarp> &at, Mask lanes, uint32_t bytes,
             uint32_t agent) const;
  /// Eight rows, of which the lanes from `self` on access a word or two each, as `spread` says, and which say the same
  /// of theirs.
  bool stretch(Row *rows, uint32_t self, Spread spread) const;

private:
  /// What has become of a cell's reader: it is as it was, it is the one who reads, or they are several.
  enum class Outcome : uint8_t { notUsual, asBefore, mine, several, needsList };
  /// Whether what is noted may be looked at, and noted, once more: then a part of an access may be.
  bool mayRepeat() const { return !together && !landing; }
  bool isBefore(Time time, uint32_t who, uint32_t self, bool alike) const;
  /// `all`: the state of a cell whose bytes all have a value.
  Outcome readAlone(Cell &cell, uint32_t self, bool writersAlike, bool readersAlike, unsigned all = Cell::valid) const;
  bool writeAlone(Cell &cell, uint32_t self, bool writersAlike, bool readersAlike, unsigned all = Cell::valid) const;
  bool readRowHere(Row &row, uint32_t self, Spread spread) const;
  bool writeRowHere(Row &row, uint32_t self, Spread spread) const;
  bool readHere(Cells &cells, Cell &cell, uint32_t self, unsigned all) const;
  bool writeHere(Cells &cells, Cell &cell, uint32_t self, unsigned all) const;
  bool readWithOthers(Cells &cells, Cell &cell, uint32_t self) const;
  bool splitWord(Cells &cells, Cell &cell, uint32_t self) const;
  template <uint32_t bytes> bool lane(Cells &cells, uint64_t offset, uint32_t self) const;
  template <bool isWrite> bool row(Cells &cells, Row &row, uint32_t self, Spread spread) const;
  bool parts(Cells &cells, const Cell &cell, uint32_t byte, uint32_t bytes, uint32_t self) const;
  template <uint32_t bytes, bool isWrite>
  Mask lanesOf(const Window &window, const std::array<char *, lanesOfWarp> &at, Mask lanes, uint32_t agent) const;
};

} // namespace kiln::simulator
