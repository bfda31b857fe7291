// The usual accesses of whole words, judged at a glance: nothing is under way there, and it was last touched by this
// lane or before what all lanes of the warp have seen. Of all others nothing is noted: Shadow looks at them closely.

#pragma once

#include "runtime/simulator/Cells.h"
#include "runtime/simulator/Program.h"

#include <span>

namespace kiln::simulator {

/// What a warp knows, and how it is about to access memory.
struct Glance {
  const Time *seen;
  const Time now;
  const uint32_t first, agents; // of the block
  const uint16_t line;
  const uint16_t landing; // the state's bits that a write sets
  const bool together;
  const bool blocksAreApart; // nothing has ordered blocks so far
  Time floor = 0;            // of memory that only this block has

  /// A word, by `self`; whether it is noted.
  bool read(Cells &cells, Cell &cell, uint32_t self) const;
  bool write(Cells &cells, Cell &cell, uint32_t self) const;
  /// A row; `self` accesses its first word.
  bool row(Cells &cells, Row &row, uint32_t self, bool writes, Spread spread) const {
    if (row.isApart && !cells.bringTogether(row))
      return false;
    return writes ? writeRow(row, self, spread) : readRow(row, self, spread);
  }
  bool readRow(Row &row, uint32_t self, Spread spread) const;
  bool writeRow(Row &row, uint32_t self, Spread spread) const;
  /// Of `lanes` each accesses a word, a half of one, or a byte, one lane after the other; the lanes that are left from
  /// the first on of which nothing is noted. `memory` alone is looked at, and no row that says the same of all its
  /// words.
  Mask single(Cells &cells, std::span<const char> memory, const std::array<char *, lanesOfWarp> &at, Mask lanes,
              uint32_t bytes, uint32_t agent, bool writes) const;
  /// Eight rows, of which the 32 lanes from `self` on access a word each, and which say the same of theirs.
  bool stretch(Row *rows, uint32_t self, bool writes) const;

private:
  /// What has become of a cell's reader: it is as it was, it is the one who reads, or they are several.
  enum class Outcome : uint8_t { notUsual, asBefore, mine, several, needsList };
  bool isBefore(Time time, uint32_t who, uint32_t self, bool alike) const;
  /// `all`: the state of a cell whose bytes all have a value.
  Outcome readAlone(Cell &cell, uint32_t self, bool writersAlike, bool readersAlike, unsigned all = Cell::valid) const;
  bool readHere(Cells &cells, Cell &cell, uint32_t self) const;
  bool writeHere(Cells &cells, Cell &cell, uint32_t self) const;
  bool readWithOthers(Cells &cells, Cell &cell, uint32_t self) const;
  bool writeAlone(Cell &cell, uint32_t self, bool writersAlike, bool readersAlike, unsigned all = Cell::valid) const;
  bool part(Cell *bytes, uint32_t count, uint32_t self, bool writes) const;
};

} // namespace kiln::simulator
