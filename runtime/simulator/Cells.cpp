// Cells, split cells and lists of readers; pages, and words used for synchronisation.

#include "runtime/simulator/Cells.h"

#include <algorithm>
#include <new>
#include <optional>

namespace kiln::simulator {

/// The number of lanes that can be the first of four consecutive lanes.
static constexpr uint32_t lanesOfRow = 29;

Cells::Cells(uint64_t bytes, bool hasValues, uint32_t readers)
    : rows((bytes + 15) / 16 + 1, Row{.all = {.state = static_cast<uint16_t>(hasValues ? Cell::valid : 0)}}),
      capacity(readers) {}

// --- Rows ----------------------------------------------------------------------------------------------------------

/// The difference between a byte's lane and that of the row's first byte.
static uint32_t laneOf(Spread spread, uint32_t byte) {
  static constexpr uint32_t bytes[] = {16, 4, 8, 2, 1};
  return byte / bytes[static_cast<size_t>(spread)];
}

void Cells::takeApart(Row &row) {
  if (!cells)
    cells.reset(static_cast<Cell *>(std::calloc(rows.size() * 4, sizeof(Cell))));
  if (!cells)
    throw std::bad_alloc();
  Cell *const own = cellsOf(row);
  const auto isSpread = [&](Spread spread) { return row.writers == spread || row.readers == spread; };
  const uint32_t width = isSpread(Spread::bytes) ? 1 : isSpread(Spread::halves) ? 2 : 4;
  const auto cellOf = [&](Cell cell, uint32_t byte) {
    cell.writer = row.all.writer + laneOf(row.writers, byte);
    cell.reader = row.all.reader + laneOf(row.readers, byte);
    return cell;
  };
  for (uint32_t word = 0; word < 4; ++word) {
    own[word] = cellOf(row.all, 4 * word);
    if (width == 4)
      continue;
    split(own[word], width);
    for (uint32_t byte = 0; byte < 4; byte += width) {
      Cell &piece = own[word].parts()[byte];
      piece.writer = row.all.writer + laneOf(row.writers, 4 * word + byte);
      piece.reader = row.all.reader + laneOf(row.readers, 4 * word + byte);
    }
  }
  row.isApart = true;
}

bool Cells::bringTogether(Row &row) {
  Cell *const own = cellsOf(row);
  const Cell first = own[0];
  if (first.state & (Cell::isSplit | Cell::manyReaders))
    return false;
  const auto spreadOf = [&](uint32_t Cell::*who, bool hasLanes) {
    const auto is = [&](Spread spread) {
      for (uint32_t word = 1; word < 4; ++word)
        if (own[word].*who != first.*who + laneOf(spread, 4 * word))
          return false;
      return true;
    };
    for (const Spread spread : {Spread::none, Spread::words, Spread::pairs})
      if ((spread == Spread::none || (hasLanes && (first.*who & allOfThem) < lanesOfRow)) && is(spread))
        return std::optional(spread);
    return std::optional<Spread>();
  };
  for (uint32_t word = 1; word < 4; ++word)
    if (own[word].written != first.written || own[word].read != first.read || own[word].writeLine != first.writeLine ||
        own[word].readLine != first.readLine || own[word].state != first.state || own[word].leaving != first.leaving)
      return false;
  const std::optional<Spread> writers = spreadOf(&Cell::writer, true),
                              readers = spreadOf(&Cell::reader, !(first.state & Cell::readerMask));
  if (!writers || !readers)
    return false;
  row = {.all = first, .writers = *writers, .readers = *readers};
  for (uint32_t word = 0; word < 4; ++word)
    own[word].state = 0;
  return true;
}

// --- Words ---------------------------------------------------------------------------------------------------------

/// Makes `to` the state of `bytes` bytes of `from`, from its `byte`-th on. A shared list is copied.
void Cells::copyPart(const Cell &from, Cell &to, uint32_t byte, uint32_t bytes) {
  const unsigned own = ((1u << bytes) - 1) * 0x11;
  to = from;
  to.state = static_cast<uint16_t>((from.state & ~(Cell::valid | Cell::landing)) | (from.state >> byte & own));
  if (!(from.state & Cell::manyReaders) || byte == 0)
    return;
  to.state &= static_cast<uint16_t>(~Cell::manyReaders);
  to.reader = readersOf(from)->agent;
  listReaders(to);
  std::copy_n(readersOf(from), capacity, readersOf(to));
}

void Cells::split(Cell &cell, uint32_t bytes) {
  if (freeParts.empty())
    freeParts.push_back(parts.emplace_back().data());
  Cell *const pieces = freeParts.back();
  freeParts.pop_back();
  for (uint32_t byte = 0; byte < 4; byte += bytes)
    copyPart(cell, pieces[byte], byte, bytes);
  cell = Cell::splitInto(pieces, bytes);
}

/// Splits the halves of a cell into bytes.
void Cells::splitHalves(Cell &cell) {
  Cell *const pieces = cell.parts();
  for (uint32_t byte = 0; byte < 4; byte += 2) {
    const Cell half = pieces[byte];
    for (uint32_t i = 0; i < 2; ++i)
      copyPart(half, pieces[byte + i], i, 1);
  }
  cell = Cell::splitInto(pieces, 1);
}

void Cells::unite(Cell &cell) {
  Cell *const pieces = cell.parts();
  for (uint32_t byte = 0; byte < 4; byte += partBytes(cell))
    forgetReaders(pieces[byte]);
  freeParts.push_back(pieces);
  cell = {};
}

void Cells::listReaders(Cell &cell) {
  if (freeLists.empty()) {
    freeLists.push_back(static_cast<uint32_t>(lists.size() / capacity));
    lists.resize(lists.size() + capacity);
  }
  const uint32_t index = freeLists.back();
  freeLists.pop_back();
  Epoch *readers = lists.data() + size_t{index} * capacity;
  readers[0] = {cell.reader, cell.read};
  if (capacity > 1)
    readers[1] = {};
  cell.reader = index;
  cell.state |= Cell::manyReaders;
}

void Cells::forgetReaders(Cell &cell) {
  if (cell.state & Cell::manyReaders)
    freeLists.push_back(cell.reader);
  cell.state &= static_cast<uint16_t>(
      ~(Cell::manyReaders | Cell::readerMask | Cell::manyBlocks | Cell::strongRead | Cell::engineRead));
  cell.reader = 0;
  cell.read = 0;
}

// --- Global memory --------------------------------------------------------------------------------------------------

GlobalShadow::Page &GlobalShadow::pageOf(uint64_t address) {
  const uint64_t number = address >> pageBits;
  return pages[number >> 27][number >> 18][number >> 9][number];
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

std::vector<BlockAccess> GlobalShadow::blockAccesses(uint64_t word) const {
  if (!anyBlockAccesses)
    return {};
  const std::lock_guard lock(wordsLock);
  const auto at = wordsOfBlocks.find(word);
  return at == wordsOfBlocks.end() ? std::vector<BlockAccess>() : at->second;
}

void GlobalShadow::setBlockAccesses(uint64_t word, std::vector<BlockAccess> accesses) {
  const std::lock_guard lock(wordsLock);
  wordsOfBlocks[word] = std::move(accesses);
  anyBlockAccesses = true;
}

} // namespace kiln::simulator
