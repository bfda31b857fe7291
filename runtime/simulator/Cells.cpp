// Cells, split cells and lists of readers.

#include "runtime/simulator/Cells.h"

#include <algorithm>
#include <new>

namespace kiln::simulator {

Cells::Cells(uint64_t bytes, bool hasValues, uint32_t readers)
    : cells(static_cast<Cell *>(std::calloc((bytes + 3) / 4 + 1, sizeof(Cell)))), capacity(readers) {
  if (!cells)
    throw std::bad_alloc();
  if (hasValues)
    for (uint64_t i = 0; i < (bytes + 3) / 4; ++i)
      cells.get()[i].state = Cell::valid;
}

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
