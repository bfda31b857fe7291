// Fast paths of the race check: words and their parts, rows, the lanes of a warp, and consecutive rows.

#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <bit>
#include <immintrin.h>

namespace kiln::simulator {

// --- Words ---------------------------------------------------------------------------------------------------------

/// Whether a recorded access by `who` at `time` happened before the present one by `self`. `alike`: both distribute
/// their lanes over the row in one way, so that comparing the first lanes suffices.
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
  } else if (cell.read == now && floor) { // both readers have passed the same barrier
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

bool Glance::readHere(Cells &cells, Cell &cell, uint32_t self, unsigned all) const {
  if (!(cell.state & Cell::manyReaders)) {
    const Outcome outcome = readAlone(cell, self, true, true, all);
    if (outcome != Outcome::needsList)
      return outcome != Outcome::notUsual;
    cells.listReaders(cell);
  } else if ((cell.state & ~(Cell::manyReaders | Cell::manyBlocks)) != all ||
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

/// Adds a reader to a cell's list, or replaces all readers; false if the list is full.
bool Glance::readWithOthers(Cells &cells, Cell &cell, uint32_t self) const {
  Epoch *readers = cells.readersOf(cell);
  uint32_t i = 0;
  while (cell.read > floor && i < cells.maxReaders() && readers[i].time &&
         isBefore(readers[i].time, readers[i].agent, self, true))
    ++i;
  if (cell.read <= floor || i == cells.maxReaders() || !readers[i].time) { // all happen before
    cells.forgetReaders(cell);
    cell.reader = self;
    return true;
  }
  i = 0;
  while (i < cells.maxReaders() && readers[i].time && (readers[i].agent ^ self) >> laneBits != 0)
    ++i;
  if (i == cells.maxReaders())
    return false;
  if (!readers[i].time && i + 1 < cells.maxReaders())
    readers[i + 1] = {};
  const bool isAlone = isBefore(readers[i].time, readers[i].agent, self, true);
  readers[i] = {isAlone ? self : self | allOfThem, now};
  return true;
}

/// A write of a cell without a list of readers. Returns whether the fast path applies.
inline bool Glance::writeAlone(Cell &cell, uint32_t self, bool writersAlike, bool readersAlike, unsigned all) const {
  constexpr unsigned usual = Cell::valid | Cell::readerMask | Cell::engineWrote | Cell::strongWrite;
  if ((cell.state & ~usual) || cell.leaving || !isBefore(cell.written, cell.writer, self, writersAlike))
    return false;
  if (cell.state & Cell::readerMask ? cell.read > floor : !isBefore(cell.read, cell.reader, self, readersAlike))
    return false;
  cell = {.written = now, .writer = self, .writeLine = line, .state = static_cast<uint16_t>(all | landing)};
  return true;
}

bool Glance::writeHere(Cells &cells, Cell &cell, uint32_t self, unsigned all) const {
  if (cell.state & Cell::manyReaders) {
    if ((cell.state & ~(Cell::valid | Cell::manyReaders)) || cell.read > floor)
      return false;
    cells.forgetReaders(cell);
  }
  return writeAlone(cell, self, true, true, all);
}

/// Records an access of all parts of a split cell; a write unites them. False if the fast path does not apply.
bool Glance::splitWord(Cells &cells, Cell &cell, uint32_t self) const {
  if (!mayRepeat())
    return false;
  const uint32_t width = Cells::partBytes(cell);
  const unsigned all = (1u << width) - 1;
  for (uint32_t byte = 0; byte < 4; byte += width)
    if (Cell &part = cell.parts()[byte];
        !(writes ? writeHere(cells, part, self, all) : readHere(cells, part, self, all)))
      return false;
  if (writes) {
    Cell one = cell.parts()[0];
    cells.unite(cell);
    one.state = static_cast<uint16_t>(Cell::valid | landing);
    cell = one;
  }
  return true;
}

bool Glance::word(Cells &cells, Cell &cell, uint32_t self) const {
  if (cell.state & Cell::isSplit)
    return splitWord(cells, cell, self);
  return writes ? writeHere(cells, cell, self, Cell::valid) : readHere(cells, cell, self, Cell::valid);
}

namespace {
/// The most frequent accesses in few instructions: to data that the lane itself accessed last, or that no lane has
/// accessed since a barrier of all warps. It has copies of the values of a Glance, which no write of a cell can change.
class Again {
public:
  /// `usual`: the state and `leaving` of a cell that may be updated.
  Again(const Glance &glance, uint32_t usual)
      : now(glance.now), floor(glance.floor), line(glance.line), usual(usual), rest(line | uint64_t{usual} << 32) {}

  /// Whether the fast path applies; if so, the access is recorded.
  template <bool isWrite> [[gnu::always_inline]] inline bool note(Cell &cell, uint32_t self) const {
    if (cell.joint() != usual || (cell.writer != self && cell.written > floor) ||
        (cell.reader != self && cell.read > floor))
      return false;
    if constexpr (isWrite) {
      static_assert(offsetof(Cell, read) == 4 && offsetof(Cell, reader) == 12 && offsetof(Cell, writeLine) == 16 &&
                    offsetof(Cell, state) == 20);
      cell = std::bit_cast<Cell>(std::array<uint64_t, 3>{now, self, rest}); // in three words; read and reader become 0
    } else {
      cell.read = now;
      cell.reader = self;
      cell.readLine = line;
    }
    return true;
  }

private:
  const Time now, floor;
  const uint16_t line;
  const uint32_t usual;
  const uint64_t rest;
};
} // namespace

// --- Rows ----------------------------------------------------------------------------------------------------------

[[gnu::always_inline]] inline bool Glance::readRowHere(Row &row, uint32_t self, Spread spread) const {
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

[[gnu::always_inline]] inline bool Glance::writeRowHere(Row &row, uint32_t self, Spread spread) const {
  Cell one = row.all;
  if (!writeAlone(one, self, row.writers == spread, row.readers == spread))
    return false;
  row = {.all = one, .writers = spread};
  return true;
}

template <bool isWrite>
[[gnu::always_inline]] inline bool Glance::row(Cells &cells, Row &row, uint32_t self, Spread spread) const {
  if (row.isApart && !cells.bringTogether(row))
    return false;
  return isWrite ? writeRowHere(row, self, spread) : readRowHere(row, self, spread);
}

bool Glance::readRow(Row &row, uint32_t self, Spread spread) const { return readRowHere(row, self, spread); }

// --- Lanes ---------------------------------------------------------------------------------------------------------

/// The lanes at which a run of `count` lanes with consecutive accesses of `bytes` bytes begins.
static Mask findRuns(const std::array<char *, lanesOfWarp> &at, Mask lanes, uint32_t bytes, uint32_t count) {
  const __m256i step = _mm256_set1_epi64x(bytes);
  Mask runs = 0; // runs of two lanes
  for (size_t lane = 0; lane < lanesOfWarp; lane += 4) {
    const auto *const here = reinterpret_cast<const __m256i *>(&at[lane]);
    const __m256i own = _mm256_loadu_si256(here);
    const __m256i next = lane + 4 < lanesOfWarp ? _mm256_loadu_si256(reinterpret_cast<const __m256i *>(&at[lane + 1]))
                                                : _mm256_permute4x64_epi64(own, 0x39);
    const __m256i follow = _mm256_cmpeq_epi64(next, _mm256_add_epi64(own, step));
    runs |= static_cast<Mask>(_mm256_movemask_pd(_mm256_castsi256_pd(follow))) << lane;
  }
  runs &= lanes & lanes >> 1;
  for (uint32_t length = 2; length < count; length *= 2)
    runs &= runs >> (length - 1) & runs >> length; // runs twice as long
  return runs;
}

/// Records an access of one lane to parts of a split cell. Returns whether the fast path applied.
bool Glance::parts(Cells &cells, const Cell &cell, uint32_t byte, uint32_t bytes, uint32_t self) const {
  if (!(cell.state & Cell::isSplit) || Cells::partBytes(cell) > bytes)
    return false;
  const uint32_t width = Cells::partBytes(cell);
  const unsigned all = (1u << width) - 1;
  bool isNoted = true;
  for (uint32_t i = 0; i < bytes; i += width) {
    Cell &part = cell.parts()[byte + i];
    isNoted &= writes ? writeHere(cells, part, self, all) : readHere(cells, part, self, all);
  }
  return isNoted;
}

/// Records the access of one lane; returns whether the fast path applied.
template <uint32_t bytes> bool Glance::lane(Cells &cells, uint64_t offset, uint32_t self) const {
  if (!mayRepeat())
    return false;
  Cell *const cell = &cells[offset / 4];
  if (bytes < 4)
    return parts(cells, *cell, offset % 4, bytes, self);
  bool isNoted = true;
  for (uint32_t i = 0; i < bytes / 4; ++i)
    isNoted &= word(cells, cell[i], self);
  return isNoted;
}

/// Records an access of a word or two, or a part of a word, at this offset, if the fast path `again` applies.
template <uint32_t bytes, bool isWrite>
[[gnu::always_inline]] static inline bool noteAgain(const Again &again, Cell *words, uint64_t offset, uint32_t self) {
  Cell *const cell = words + offset / 4;
  if constexpr (bytes < 4)
    return cell->joint() == Cell::joint(Cell::isSplit, bytes) && again.note<isWrite>(cell->parts()[offset % 4], self);
  else
    return again.note<isWrite>(*cell, self) && (bytes == 4 || again.note<isWrite>(cell[1], self));
}

/// The first lane from `lane` on to which the fast path does not apply. A separate function, so that its state stays in
/// registers.
template <uint32_t bytes, bool isWrite>
[[gnu::noinline]] static uint32_t firstOther(const Again again, Cell *words, const char *begin, uint64_t size,
                                             char *const *at, uint32_t lane, uint32_t agent) {
  for (; lane < lanesOfWarp; ++lane)
    if (const auto offset = static_cast<uint64_t>(at[lane] - begin);
        offset >= size || !noteAgain<bytes, isWrite>(again, words, offset, agent | lane))
      break;
  return lane;
}

template <uint32_t bytes, bool isWrite>
Mask Glance::lanesOf(const Window &window, const std::array<char *, lanesOfWarp> &at, Mask lanes,
                     uint32_t agent) const {
  constexpr uint32_t count = 16 / bytes; // lanes that a row may have
  constexpr Spread spreads[] = {Spread::none, Spread::pairs, Spread::words, Spread::halves, Spread::bytes};
  constexpr Spread spread = spreads[std::countr_zero(count)];
  constexpr uint32_t usual = (1u << std::min(bytes, 4u)) - 1, never = ~0u;
  const Again again(*this, mayRepeat() ? usual : never);
  Cells &cells = window.cells;
  const char *const begin = window.begin;
  const uint64_t size = window.bytes;
  Cell *words = cells.words();
  Mask runs = 0;
  bool hasRuns = together; // then they are not needed
  Mask left = lanes;
  if (const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
      count > 1 && words && lanes == allLanes << lane && (lane % count || at[lane + 1] != at[lane] + bytes)) {
    const uint32_t other = firstOther<bytes, isWrite>(again, words, begin, size, at.data(), lane, agent);
    if (other == lanesOfWarp)
      return 0;
    left &= allLanes << other;
  }
  for (; left; left &= left - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(left));
    const auto offset = static_cast<uint64_t>(at[lane] - begin);
    if (offset >= size)
      return left;
    const bool beginsRow = offset % 16 == 0 && lane % count == 0;
    if (count > 1 && beginsRow && !hasRuns && at[lane + 1] == at[lane] + bytes)
      runs = findRuns(at, lanes, bytes, count), hasRuns = true;
    if (count == 1 || (beginsRow && runs >> lane & 1)) {
      if (row<isWrite>(cells, cells.row(offset / 16), agent | (together ? allOfThem : lane), spread)) {
        left &= ~(((Mask{1} << (count - 1)) - 1) << 1 << lane); // the lanes that follow
        continue;
      }
    } else if (words && noteAgain<bytes, isWrite>(again, words, offset, agent | lane)) {
      continue;
    }
    if (!this->lane<bytes>(cells, offset, agent | lane))
      return left;
    words = cells.words();
  }
  return 0;
}

Mask Glance::lanes(const Window &window, const std::array<char *, lanesOfWarp> &at, Mask lanes, uint32_t bytes,
                   uint32_t agent) const {
  const auto look = [&]<uint32_t width>(std::integral_constant<uint32_t, width>) {
    return writes ? lanesOf<width, true>(window, at, lanes, agent) : lanesOf<width, false>(window, at, lanes, agent);
  };
  switch (bytes) {
  case 1:
    return look(std::integral_constant<uint32_t, 1>());
  case 2:
    return look(std::integral_constant<uint32_t, 2>());
  case 4:
    return look(std::integral_constant<uint32_t, 4>());
  case 8:
    return look(std::integral_constant<uint32_t, 8>());
  case 16:
    return look(std::integral_constant<uint32_t, 16>());
  default:
    return lanes;
  }
}

// --- Consecutive rows ----------------------------------------------------------------------------------------------

/// The differences of writer and reader between consecutive rows of a range: the lanes of a row, or 0 for a single
/// lane.
static __m256i laneSteps(const Row &row) {
  const auto lanes = [](Spread spread) { return spread == Spread::words ? 4 : spread == Spread::pairs ? 2 : 0; };
  return _mm256_setr_epi32(0, 0, lanes(row.writers), lanes(row.readers), 0, 0, 0, 0);
}

bool Glance::stretch(Row *rows, uint32_t self, Spread spread) const {
  static_assert(offsetof(Cell, writer) == 8 && offsetof(Cell, reader) == 12);
  constexpr int count = 8;
  const Row before = rows[0];
  const auto isWide = [](Spread one) { return one == Spread::none || one == Spread::words || one == Spread::pairs; };
  if (before.isApart || !isWide(before.writers) || !isWide(before.readers))
    return false;
  auto *const words = reinterpret_cast<__m256i *>(rows);
  const __m256i step = laneSteps(before);
  __m256i want = _mm256_load_si256(words), differences = _mm256_setzero_si256();
  for (int i = 1; i < count; ++i) {
    want = _mm256_add_epi32(want, step);
    differences = _mm256_or_si256(differences, _mm256_xor_si256(want, _mm256_load_si256(words + i)));
  }
  if (!_mm256_testz_si256(differences, differences))
    return false;
  Row after = before;
  if (!(writes ? writeRowHere(after, self, spread) : readRowHere(after, self, spread)))
    return false;
  const __m256i stepAfter = laneSteps(after);
  __m256i value = _mm256_load_si256(reinterpret_cast<const __m256i *>(&after));
  for (int i = 0; i < count; ++i) {
    _mm256_store_si256(words + i, value);
    value = _mm256_add_epi32(value, stepAfter);
  }
  return true;
}

} // namespace kiln::simulator
