// The fast path of the race detector. An access takes it if nothing is in flight there, and the last access was by this
// lane or happened before, for all lanes of the warp. Other accesses change nothing here; Shadow handles them.

#pragma once

#include "runtime/simulator/Cells.h"
#include "runtime/simulator/Program.h"

namespace kiln::simulator {

/// Memory with contiguous cells: a CTA's shared memory, or a page.
struct Window {
  Cells &cells;
  const char *begin;
  uint64_t bytes;
};

/// The view of a warp, and the kind of its access.
struct Glance {
  const Time *seen;
  const Time now;
  const uint32_t first, agents; // of the CTA
  const uint16_t line;
  const uint16_t landing; // the state bits that a write sets
  const bool together;
  const bool blocksAreApart; // nothing has ordered CTAs so far
  const bool writes;
  Time floor = 0; // for memory that only this CTA has

  /// Records an access of a word by `self`; false if it is not usual.
  bool word(Cells &cells, Cell &cell, uint32_t self) const;
  /// Records a read of a row whose cell describes all its words; `self` reads the first word.
  bool readRow(Row &row, uint32_t self, Spread spread) const;
  /// Records accesses of `lanes`, lanes of `agent`, to `bytes` aligned bytes each (1, 2, 4, 8 or 16). Returns the lanes
  /// from the first one on that were not recorded completely, or that are outside the window.
  Mask lanes(const Window &window, const std::array<char *, lanesOfWarp> &at, Mask lanes, uint32_t bytes,
             uint32_t agent) const;
  /// Records accesses to eight rows. The lanes from `self` on access one or two words each, as `spread` says, and each
  /// row's cell describes all its words.
  bool stretch(Row *rows, uint32_t self, Spread spread) const;

private:
  /// The new reader of a cell: unchanged, this lane, several, or a list is needed.
  enum class Outcome : uint8_t { notUsual, asBefore, mine, several, needsList };
  /// Whether recording an access twice is harmless, so that a part of an access may be recorded.
  bool mayRepeat() const { return !together && !landing; }
  bool isBefore(Time time, uint32_t who, uint32_t self, bool alike) const;
  /// `all`: the state of a cell whose bytes are all initialised.
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
