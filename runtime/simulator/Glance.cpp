// Words, rows, and rows in a row.

#include "runtime/simulator/Glance.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <immintrin.h>

namespace kiln::simulator {

// --- Words ---------------------------------------------------------------------------------------------------------

/// `alike`: lanes of who did it are spread over the row as those who do now, so that one comparison tells of all.
inline bool Glance::isBefore(Time time, uint32_t who, uint32_t self, bool alike) const {
  if (time <= floor || (alike && who == self && !together))
    return true;
  const uint32_t agent = (who >> laneBits) - first;
  return agent < agents && time <= seen[agent];
}

/// A read of a cell that has no list of readers.
inline Glance::Outcome Glance::readAlone(Cell &cell, uint32_t self, bool writersAlike, bool readersAlike,
                                         unsigned all) const {
  constexpr unsigned usual = Cell::readerMask | Cell::manyBlocks | Cell::engineWrote | Cell::strongWrite;
  if ((cell.state & ~usual) != all || !isBefore(cell.written, cell.writer, self, writersAlike))
    return Outcome::notUsual;
  if (cell.state & Cell::manyBlocks)
    return Outcome::asBefore;
  Outcome outcome = Outcome::mine;
  if (cell.state & Cell::readerMask) {
    if (cell.read == now) {
      cell.reader |= 1u << ((self >> laneBits) - first);
      return Outcome::several;
    }
    if (cell.read > floor)
      return Outcome::notUsual;
    cell.state &= static_cast<uint16_t>(~Cell::readerMask);
    cell.reader = self;
  } else if (isBefore(cell.read, cell.reader, self, readersAlike)) {
    cell.reader = self;
  } else if ((cell.reader ^ self) >> laneBits == 0) {
    if (!together && !readersAlike && (cell.reader & allOfThem) != allOfThem)
      return Outcome::notUsual;
    if (!readersAlike || cell.reader != self || together) {
      cell.reader |= allOfThem;
      outcome = Outcome::several;
    }
  } else if (cell.read == now && floor) { // both came from one barrier
    cell.reader = 1u << ((cell.reader >> laneBits) - first) | 1u << ((self >> laneBits) - first);
    cell.state |= Cell::readerMask;
    outcome = Outcome::several;
  } else if (blocksAreApart && (cell.reader >> laneBits) - first >= agents) {
    cell.state |= Cell::manyBlocks;
    return Outcome::asBefore;
  } else {
    return Outcome::needsList;
  }
  cell.read = now;
  cell.readLine = line;
  return outcome;
}

/// Inline, as the next but one is: a call costs as much as what they mostly do.
[[gnu::always_inline]] inline bool Glance::readHere(Cells &cells, Cell &cell, uint32_t self) const {
  if (!(cell.state & Cell::manyReaders)) {
    const Outcome outcome = readAlone(cell, self, true, true);
    if (outcome != Outcome::needsList)
      return outcome != Outcome::notUsual;
    cells.listReaders(cell);
  } else if ((cell.state & ~(Cell::manyReaders | Cell::manyBlocks)) != Cell::valid ||
             !isBefore(cell.written, cell.writer, self, true)) {
    return false;
  } else if (cell.state & Cell::manyBlocks) {
    return true;
  }
  if (readWithOthers(cells, cell, self)) {
    cell.read = now;
    cell.readLine = line;
  }
  return true;
}

/// Adds a reader to the list of a cell; false when it has as many as it holds.
bool Glance::readWithOthers(Cells &cells, Cell &cell, uint32_t self) const {
  if (cell.read <= floor) {
    cells.forgetReaders(cell);
    cell.reader = self;
    return true;
  }
  Epoch *readers = cells.readersOf(cell);
  uint32_t i = 0;
  while (i < cells.mostReaders() && readers[i].time && (readers[i].agent ^ self) >> laneBits != 0)
    ++i;
  if (i == cells.mostReaders())
    return false;
  if (!readers[i].time && i + 1 < cells.mostReaders())
    readers[i + 1] = {};
  const bool isAlone = isBefore(readers[i].time, readers[i].agent, self, true);
  readers[i] = {isAlone ? self : self | allOfThem, now};
  return true;
}

/// A write of a cell that has no list of readers; whether it was a usual one.
inline bool Glance::writeAlone(Cell &cell, uint32_t self, bool writersAlike, bool readersAlike, unsigned all) const {
  constexpr unsigned usual = Cell::valid | Cell::readerMask | Cell::engineWrote | Cell::strongWrite;
  if ((cell.state & ~usual) || cell.leaving || !isBefore(cell.written, cell.writer, self, writersAlike))
    return false;
  if (cell.state & Cell::readerMask ? cell.read > floor : !isBefore(cell.read, cell.reader, self, readersAlike))
    return false;
  cell = {.written = now, .writer = self, .writeLine = line, .state = static_cast<uint16_t>(all | landing)};
  return true;
}

[[gnu::always_inline]] inline bool Glance::writeHere(Cells &cells, Cell &cell, uint32_t self) const {
  if (cell.state & Cell::manyReaders) {
    if ((cell.state & ~(Cell::valid | Cell::manyReaders)) || cell.read > floor)
      return false;
    cells.forgetReaders(cell);
  }
  return writeAlone(cell, self, true, true);
}

bool Glance::read(Cells &cells, Cell &cell, uint32_t self) const { return readHere(cells, cell, self); }
bool Glance::write(Cells &cells, Cell &cell, uint32_t self) const { return writeHere(cells, cell, self); }

/// One or two bytes of a split cell, of which the same is known.
inline bool Glance::part(Cell *bytes, uint32_t count, uint32_t self, bool writes) const {
  constexpr unsigned all = 1; // a byte has one bit of Cell::valid
  if (count == 2 && std::memcmp(bytes, bytes + 1, sizeof(Cell)) != 0)
    return false;
  Cell one = bytes[0];
  if (writes) {
    if (!writeAlone(one, self, true, true, all))
      return false;
  } else if (const Outcome outcome = readAlone(one, self, true, true, all);
             outcome == Outcome::notUsual || outcome == Outcome::needsList) {
    return false;
  }
  std::fill_n(bytes, count, one);
  return true;
}

Mask Glance::single(Cells &cells, std::span<const char> memory, const std::array<char *, lanesOfWarp> &at, Mask lanes,
                    uint32_t bytes, uint32_t agent, bool writes) const {
  const uint32_t withinRow = 16 / bytes - 1; // bytes are 1, 2 or 4
  for (Mask left = lanes; left; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(left));
    const auto offset = static_cast<uint64_t>(at[lane] - memory.data());
    Cell *const cell = offset < memory.size() ? cells.apart(offset / 4) : nullptr;
    if (!cell ||
        (offset % 16 == 0 && (lane & withinRow) == 0 && at[lane + 1] == at[lane] + bytes)) // it may come together
      return left;
    const uint32_t self = agent | lane;
    const bool isNoted = bytes == 4 ? (writes ? writeHere(cells, *cell, self) : readHere(cells, *cell, self))
                         : cell->state & Cell::isSplit ? part(&cells.bytesOf(*cell)[offset % 4], bytes, self, writes)
                                                       : false;
    if (!isNoted)
      return left;
  }
  return 0;
}

// --- Rows ----------------------------------------------------------------------------------------------------------

bool Glance::readRow(Row &row, uint32_t self, Spread spread) const {
  Cell one = row.all;
  switch (readAlone(one, self, row.writers == spread, row.readers == spread)) {
  case Outcome::notUsual:
  case Outcome::needsList:
    return false;
  case Outcome::asBefore:
    spread = row.readers;
    break;
  case Outcome::mine:
    break;
  case Outcome::several:
    spread = Spread::none;
    break;
  }
  row.all = one;
  row.readers = spread;
  return true;
}

bool Glance::writeRow(Row &row, uint32_t self, Spread spread) const {
  Cell one = row.all;
  if (!writeAlone(one, self, row.writers == spread, row.readers == spread))
    return false;
  row = {.all = one, .writers = spread};
  return true;
}

/// What is added to a row for the next one of a stretch: four lanes, where its words have one each.
static __m256i stepOf(const Row &row) {
  return _mm256_setr_epi32(0, 0, row.writers == Spread::words ? 4 : 0, row.readers == Spread::words ? 4 : 0, 0, 0, 0,
                           0);
}

bool Glance::stretch(Row *rows, uint32_t self, bool writes) const {
  static_assert(offsetof(Cell, writer) == 8 && offsetof(Cell, reader) == 12);
  constexpr int count = 8;
  const Row before = rows[0];
  const auto isWide = [](Spread spread) { return spread == Spread::none || spread == Spread::words; };
  if (before.isApart || !isWide(before.writers) || !isWide(before.readers))
    return false;
  auto *const words = reinterpret_cast<__m256i *>(rows);
  const __m256i step = stepOf(before);
  __m256i want = _mm256_load_si256(words), differences = _mm256_setzero_si256();
  for (int i = 1; i < count; ++i) {
    want = _mm256_add_epi32(want, step);
    differences = _mm256_or_si256(differences, _mm256_xor_si256(want, _mm256_load_si256(words + i)));
  }
  if (!_mm256_testz_si256(differences, differences))
    return false;
  Row after = before;
  if (!(writes ? writeRow(after, self, Spread::words) : readRow(after, self, Spread::words)))
    return false;
  const __m256i stepAfter = stepOf(after);
  __m256i value = _mm256_load_si256(reinterpret_cast<const __m256i *>(&after));
  for (int i = 0; i < count; ++i) {
    _mm256_store_si256(words + i, value);
    value = _mm256_add_epi32(value, stepAfter);
  }
  return true;
}

} // namespace kiln::simulator
