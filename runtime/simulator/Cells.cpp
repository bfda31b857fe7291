// Cells, split cells and lists of readers.

#include "runtime/simulator/Cells.h"

#include <algorithm>
#include <new>
#include <optional>

namespace kiln::simulator {

/// A lane that three others follow.
static constexpr uint32_t lanesOfRow = 29;

Cells::Cells(uint64_t bytes, bool hasValues, uint32_t readers)
    : rows((bytes + 15) / 16 + 1, Row{.all = {.state = static_cast<uint16_t>(hasValues ? Cell::valid : 0)}}),
      areApart(rows.size()), cells(static_cast<Cell *>(std::malloc(rows.size() * 4 * sizeof(Cell)))),
      capacity(readers) {
  if (!cells)
    throw std::bad_alloc();
}

// --- Rows ----------------------------------------------------------------------------------------------------------

/// What is added to the lane of a row's first byte for another one.
static uint32_t laneOf(Spread spread, uint32_t byte) {
  static constexpr uint32_t bytes[] = {16, 4, 8, 2, 1};
  return byte / bytes[static_cast<size_t>(spread)];
}

static bool isFine(Spread spread) { return spread == Spread::halves || spread == Spread::bytes; }

void Cells::takeApart(Row &row) {
  Cell *const own = cellsOf(row);
  const auto cellOf = [&](Cell cell, uint32_t byte) {
    cell.writer = row.all.writer + laneOf(row.writers, byte);
    cell.reader = row.all.reader + laneOf(row.readers, byte);
    return cell;
  };
  for (uint32_t word = 0; word < 4; ++word) {
    own[word] = cellOf(row.all, 4 * word);
    if (!isFine(row.writers) && !isFine(row.readers))
      continue;
    split(own[word]);
    for (uint32_t byte = 0; byte < 4; ++byte) {
      Cell &part = bytesOf(own[word])[byte];
      part = cellOf(part, 4 * word + byte);
    }
  }
  row.isApart = true;
  areApart[static_cast<size_t>(&row - rows.data())] = true;
}

bool Cells::bringTogether(Row &row) {
  const Cell *const own = cellsOf(row);
  const Cell &first = own[0];
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
  areApart[static_cast<size_t>(&row - rows.data())] = false;
  return true;
}

// --- Words ---------------------------------------------------------------------------------------------------------

/// A free place of a pool, made if there is none.
static uint32_t take(std::vector<uint32_t> &free, size_t &size) {
  if (free.empty())
    return static_cast<uint32_t>(size++);
  const uint32_t index = free.back();
  free.pop_back();
  return index;
}

void Cells::split(Cell &cell) {
  size_t size = parts.size();
  const uint32_t index = take(freeParts, size);
  parts.resize(size);
  for (int byte = 0; byte < 4; ++byte) {
    Cell &part = parts[index][static_cast<size_t>(byte)];
    part = cell;
    part.state = static_cast<uint16_t>((cell.state & ~(Cell::valid | Cell::landing)) | (cell.state >> byte & 0x11));
    if (cell.state & Cell::manyReaders && byte > 0) { // a list each
      part.state &= static_cast<uint16_t>(~Cell::manyReaders);
      part.reader = readersOf(cell)->agent;
      part.read = readersOf(cell)->time;
      listReaders(part);
      std::copy_n(readersOf(cell), capacity, readersOf(part));
      part.read = cell.read;
    }
  }
  cell = {.writer = index, .state = Cell::isSplit};
}

void Cells::unite(Cell &cell) {
  for (Cell &part : bytesOf(cell))
    forgetReaders(part);
  freeParts.push_back(cell.writer);
  cell = {};
}

void Cells::listReaders(Cell &cell) {
  size_t size = lists.size() / capacity;
  const uint32_t index = take(freeLists, size);
  lists.resize(size * capacity);
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

} // namespace kiln::simulator
