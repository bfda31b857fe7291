// Cells are looked at, judged and changed.

#include "runtime/simulator/Shadow.h"

#include "runtime/simulator/Cta.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

Shadow::Shadow(GlobalShadow &global, uint32_t number, int threads, char *sharedMemory, uint32_t sharedBytes)
    : order(number * (static_cast<uint32_t>(threads + lanesOfWarp - 1) / lanesOfWarp + Causality::engines), threads),
      global(global), sharedMemory(sharedMemory), sharedBytes(sharedBytes),
      shared(sharedBytes, false, static_cast<uint32_t>(order.warps()) + Causality::engines) {}

// --- Cells of an address -------------------------------------------------------------------------------------------

GlobalShadow::Page &Shadow::pageOf(const char *at) {
  const uint64_t number = reinterpret_cast<uint64_t>(at) >> GlobalShadow::pageBits;
  auto &[known, page] = recentPages[number % recentPages.size()];
  if (known != number)
    known = number, page = &global.pageOf(reinterpret_cast<uint64_t>(at));
  return *page;
}

namespace {
constexpr uint64_t pageBytes = uint64_t{1} << GlobalShadow::pageBits;

/// A page that no other thread of the host looks at meanwhile.
struct HeldPage {
  GlobalShadow::Page *page = nullptr;
  HeldPage() = default;
  HeldPage(const HeldPage &) = delete;
  ~HeldPage() { take(nullptr); }
  /// Lets go of the page, and takes another one.
  void take(GlobalShadow::Page *other) {
    if (other == page)
      return;
    if (page)
      page->held.unlock();
    page = other;
    if (page)
      page->held.lock();
  }
};
} // namespace

/// Calls function(cells, cell, its bytes, its first byte's address) for all cells that the bytes lie in.
template <class Function> void Shadow::forCells(char *at, uint32_t bytes, Function function) {
  const auto walk = [&](Cells &cells, uint64_t first, uint32_t length) {
    for (uint64_t offset = first; offset < first + length;) {
      const uint64_t stop = std::min((offset | 3) + 1, first + length);
      function(cells, cells[offset >> 2], ((1u << (stop - offset)) - 1) << (offset & 3), at);
      at += stop - offset;
      offset = stop;
    }
  };
  if (isShared(at))
    return walk(shared, static_cast<uint64_t>(at - sharedMemory), bytes);
  while (bytes > 0) {
    const uint64_t first = reinterpret_cast<uint64_t>(at) % pageBytes;
    const auto length = static_cast<uint32_t>(std::min<uint64_t>(bytes, pageBytes - first));
    HeldPage held;
    held.take(&pageOf(at));
    walk(held.page->cells, first, length);
    bytes -= length;
  }
}

// --- Accesses ------------------------------------------------------------------------------------------------------

static uint16_t shortLine(int line) { return static_cast<uint16_t>(line <= 0xffff ? line : 0); }

/// Whether four cells say the same.
static bool sameFour(const Cell *cells) {
  const auto word = [&](size_t i) {
    uint64_t bytes;
    std::memcpy(&bytes, reinterpret_cast<const char *>(cells) + i * sizeof(bytes), sizeof(bytes));
    return bytes;
  };
  static_assert(sizeof(Cell) == 3 * sizeof(uint64_t));
  uint64_t differences = 0;
  for (size_t i = 0; i < 9; ++i)
    differences |= word(i) ^ word(i + 3);
  return differences == 0;
}

namespace {
/// The usual cases, decided at once: whole words, in which nothing is under way, last touched by this lane or before
/// what all lanes of the warp have seen. False for all others, of which nothing is noted.
struct Glance {
  const Time *seen;
  const Time now;
  const uint32_t first, agents; // of the block
  const uint16_t line;
  const uint16_t landing; // the state's bits that a write sets
  const bool together;
  const bool blocksAreApart; // nothing has ordered blocks so far
  Time floor = 0;            // of memory that only this block has

  bool isBefore(Time time, uint32_t who, uint32_t self) const {
    if (time <= floor || (who == self && !together))
      return true;
    const uint32_t agent = (who >> laneBits) - first;
    return agent < agents && time <= seen[agent];
  }
  enum class Outcome : uint8_t { notUsual, noted, needsList };
  /// A read of a cell that has no list of readers.
  Outcome readAlone(Cell &cell, uint32_t self) const {
    if ((cell.state & ~(Cell::readerMask | Cell::manyBlocks)) != Cell::valid ||
        !isBefore(cell.written, cell.writer, self))
      return Outcome::notUsual;
    if (cell.state & Cell::manyBlocks)
      return Outcome::noted;
    if (cell.state & Cell::readerMask) {
      const uint32_t bit = 1u << ((self >> laneBits) - first);
      if (cell.read == now) {
        cell.reader |= bit;
        return Outcome::noted;
      }
      if (cell.read > floor)
        return Outcome::notUsual;
      cell.state = Cell::valid;
      cell.reader = self;
    } else if (isBefore(cell.read, cell.reader, self)) {
      cell.reader = self;
    } else if ((cell.reader ^ self) >> laneBits == 0) {
      cell.reader |= cell.reader == self ? 0 : allOfThem;
    } else if (cell.read == now && floor) { // both came from one barrier
      cell.reader = 1u << ((cell.reader >> laneBits) - first) | 1u << ((self >> laneBits) - first);
      cell.state |= Cell::readerMask;
    } else if (blocksAreApart && (cell.reader >> laneBits) - first >= agents) {
      cell.state |= Cell::manyBlocks;
      return Outcome::noted;
    } else {
      return Outcome::needsList;
    }
    cell.read = now;
    cell.readLine = line;
    return Outcome::noted;
  }
  bool read(Cells &cells, Cell &cell, uint32_t self) const {
    if (!(cell.state & Cell::manyReaders)) {
      const Outcome outcome = readAlone(cell, self);
      if (outcome != Outcome::needsList)
        return outcome == Outcome::noted;
      cells.listReaders(cell);
    } else if ((cell.state & ~(Cell::manyReaders | Cell::manyBlocks)) != Cell::valid ||
               !isBefore(cell.written, cell.writer, self)) {
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
  bool readWithOthers(Cells &cells, Cell &cell, uint32_t self) const {
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
    const bool isAlone = isBefore(readers[i].time, readers[i].agent, self);
    readers[i] = {isAlone ? self : self | allOfThem, now};
    return true;
  }
  /// A write of a cell that has no list of readers; whether it was a usual one.
  bool writeAlone(Cell &cell, uint32_t self) const {
    if ((cell.state & ~(Cell::valid | Cell::readerMask)) || cell.leaving || !isBefore(cell.written, cell.writer, self))
      return false;
    if (cell.state & Cell::readerMask ? cell.read > floor : !isBefore(cell.read, cell.reader, self))
      return false;
    cell = {.written = now, .writer = self, .writeLine = line, .state = static_cast<uint16_t>(Cell::valid | landing)};
    return true;
  }
  bool write(Cells &cells, Cell &cell, uint32_t self) const {
    if (cell.state & Cell::manyReaders) {
      if ((cell.state & ~(Cell::valid | Cell::manyReaders)) || cell.read > floor)
        return false;
      cells.forgetReaders(cell);
    }
    return writeAlone(cell, self);
  }
  /// Four cells that say the same, as one; what stays the same is left alone, for the caches' sake. False when they do
  /// not, or the access is no usual one.
  bool row(Cell *cells, uint32_t self, bool writes) const {
    Cell one = *cells;
    if (one.state & (Cell::manyReaders | Cell::isSplit) || !sameFour(cells))
      return false;
    if (writes ? !writeAlone(one, self) : readAlone(one, self) != Outcome::noted)
      return false;
    if (writes || one.read != cells->read || one.reader != cells->reader || one.state != cells->state ||
        one.readLine != cells->readLine)
      std::fill_n(cells, 4, one);
    return true;
  }
};
} // namespace

void Shadow::access(const Accesses &a) {
  Visit visit{.accesses = &a, .warp = a.warp, .step = a.step};
  visit.agent = a.warp.index;
  visit.kind = a.kind;
  const bool updates = a.kind == AccessKind::atomic || a.kind == AccessKind::mbarrier;
  visit.reads = isRead(a.kind) || a.kind == AccessKind::atomic;
  visit.writes = !isRead(a.kind);
  visit.strong = updates || a.kind == AccessKind::strongRead || a.kind == AccessKind::strongWrite;
  visit.line = shortLine(a.warp.place(a.step).line);
  const bool together = a.kind == AccessKind::warpRead || a.kind == AccessKind::warpWrite;
  Glance glance{.seen = order.seenBy(visit.agent),
                .now = order.stampOf(visit.agent),
                .first = order.firstAgent(),
                .agents = static_cast<uint32_t>(order.warps()) + Causality::engines,
                .line = visit.line,
                .landing = static_cast<uint16_t>(a.kind == AccessKind::asyncWrite ? Cell::landing : 0),
                .together = together,
                .blocksAreApart = !global.ordersBlocks()};
  const uint32_t agent = (order.firstAgent() + static_cast<uint32_t>(visit.agent)) << laneBits;
  HeldPage held; // neighbouring lanes mostly want the same
  for (Mask left = a.lanes; left; left &= left - 1) {
    visit.lane = std::countr_zero(left);
    visit.self = agent | (together ? allOfThem : static_cast<uint32_t>(visit.lane));
    visit.bytes = a.sizes ? (*a.sizes)[static_cast<size_t>(visit.lane)] : a.bytes;
    char *const begin = a.pointers.at[static_cast<size_t>(visit.lane)];
    visit.begin = begin;
    const uint64_t inPage = reinterpret_cast<uint64_t>(begin) % pageBytes;
    const bool inShared = isShared(begin);
    if (visit.bytes % 4 || visit.strong || (!inShared && inPage + visit.bytes > pageBytes)) {
      held.take(nullptr);
      forCells(begin, visit.bytes,
               [&](Cells &cells, Cell &cell, unsigned bytes, char *at) { this->visit(visit, cells, cell, bytes, at); });
      continue;
    }
    if (!inShared)
      held.take(&pageOf(begin));
    Cells &cells = inShared ? shared : held.page->cells;
    glance.floor = inShared ? order.floorOf(visit.agent) : 0;
    Cell *cell = &cells[(inShared ? static_cast<uint64_t>(begin - sharedMemory) : inPage) >> 2];
    const uint32_t words = visit.bytes / 4;
    if (words == 4 && glance.row(cell, visit.self, visit.writes)) // as rows of 16 bytes mostly are
      continue;
    for (uint32_t word = 0; word < words; ++word, ++cell)
      if (!(visit.writes ? glance.write(cells, *cell, visit.self) : glance.read(cells, *cell, visit.self)))
        this->visit(visit, cells, *cell, Cell::valid, begin + size_t{4} * word);
  }
}

void Shadow::visit(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes, char *at) {
  if (bytes == Cell::valid && !(cell.state & Cell::isSplit))
    return visitPart(visit, cells, cell, bytes, at);
  if (!(cell.state & Cell::isSplit))
    cells.split(cell);
  for (unsigned byte = 0; byte < 4; ++byte)
    if (bytes >> byte & 1) {
      visitPart(visit, cells, cells.bytesOf(cell)[byte], 1, at);
      ++at;
    }
  if (visit.writes && bytes == Cell::valid) {
    Cell whole = cells.bytesOf(cell)[0];
    whole.state |= Cell::valid;
    const bool landing = whole.state & Cell::landing;
    cells.unite(cell);
    cell = whole;
    if (landing)
      cell.state |= Cell::landing;
  }
}

/// A cell that is not split, of which the bytes are accessed.
void Shadow::visitPart(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes, char *at) {
  if (cell.state >> 4 & bytes)
    report(visit, Check::inFlight, at, "to which an asynchronous copy is under way that nobody has waited for");
  else if (visit.writes && cell.leaving)
    report(visit, Check::inFlight, at, "which an asynchronous instruction reads that nobody has waited for");
  else if (visit.reads && (~cell.state & bytes))
    report(visit, Check::uninitialised, at, "to which nothing was written");
  else
    checkRaces(visit, cells, cell, bytes, at);
  if (visit.writes)
    noteWrite(visit, cells, cell, bytes);
  else
    noteRead(visit, cells, cell);
  cell.state |= static_cast<uint16_t>(bytes); // what was reported is not reported again
}

// --- Races ---------------------------------------------------------------------------------------------------------

bool Shadow::isBefore(const Visit &visit, Time time, uint32_t who) const {
  if (time == 0)
    return true;
  const uint32_t lane = visit.self & allOfThem;
  return (who == visit.self && lane != allOfThem) ||
         order.isBefore({who >> laneBits, time}, visit.agent, lane == allOfThem ? -1 : static_cast<int>(lane));
}

/// Whether a store writes what is there, or what another lane writes at once.
bool Shadow::storesTheSame(const Visit &visit, const Cell &cell, unsigned bytes, const char *at) const {
  const Accesses &all = *visit.accesses;
  if (!all.stored)
    return false;
  size_t other = lanesOfWarp; // a lane that writes there at once
  if (cell.writer >> laneBits == visit.self >> laneBits)
    for (Mask left = all.lanes & ((Mask{1} << visit.lane) - 1); left; left &= left - 1)
      if (const auto lane = static_cast<size_t>(std::countr_zero(left));
          at >= all.pointers.at[lane] && at < all.pointers.at[lane] + all.bytes)
        other = lane;
  for (uint32_t i = 0; i < static_cast<uint32_t>(std::popcount(bytes)); ++i) {
    const char *byte = at + i;
    const uint8_t mine = all.stored->byteOf(all.stored->context, visit.lane, static_cast<uint32_t>(byte - visit.begin));
    const uint8_t theirs = other < lanesOfWarp
                               ? all.stored->byteOf(all.stored->context, static_cast<int>(other),
                                                    static_cast<uint32_t>(byte - all.pointers.at[other]))
                               : static_cast<uint8_t>(*byte);
    if (mine != theirs)
      return false;
  }
  return true;
}

/// Whether a barrier of all warps came after the last read; what engines read is not behind it.
bool Shadow::allReadBefore(const Visit &visit, const Cell &cell) const {
  return cell.read <= order.floorOf(visit.agent) && isShared(visit.begin) && !(cell.state & Cell::engineRead);
}

void Shadow::checkRaces(const Visit &visit, Cells &cells, const Cell &cell, unsigned bytes, char *at) {
  if (!isBefore(visit, cell.written, cell.writer) && !(visit.strong && cell.state & Cell::strongWrite) &&
      !(visit.writes && storesTheSame(visit, cell, bytes, at)))
    return reportRace(visit, at, cell.writer, true, cell.writeLine);
  if (visit.byEngine && !(cell.state & Cell::engineWrote) &&
      !order.isFenced({cell.writer >> laneBits, cell.written}, visit.agent))
    return report(visit, Check::proxy, at,
                  "for an asynchronous engine, with no fence.proxy.async since they were written");
  if (!visit.writes || (visit.strong && cell.state & Cell::strongRead))
    return;
  if (cell.state & Cell::manyBlocks && !global.ordersBlocks())
    return report(visit, Check::racePrograms, at, "which several blocks have read, and nothing orders them");
  if (!(cell.state & (Cell::manyReaders | Cell::readerMask))) {
    if (!isBefore(visit, cell.read, cell.reader))
      reportRace(visit, at, cell.reader, false, cell.readLine);
    return;
  }
  if (allReadBefore(visit, cell))
    return;
  if (cell.state & Cell::readerMask) {
    for (uint32_t left = cell.reader; left; left &= left - 1)
      if (const uint32_t who = readerOf(static_cast<uint32_t>(std::countr_zero(left)));
          !isBefore(visit, cell.read, who))
        return reportRace(visit, at, who, false, cell.readLine);
    return;
  }
  const Epoch *readers = cells.readersOf(cell);
  for (uint32_t i = 0; i < cells.mostReaders() && readers[i].time; ++i)
    if (!isBefore(visit, readers[i].time, readers[i].agent))
      return reportRace(visit, at, readers[i].agent, false, cell.readLine);
}

/// The readers of a mask as a list.
void Shadow::listMask(Cells &cells, Cell &cell) const {
  uint32_t left = cell.reader;
  cell.state &= static_cast<uint16_t>(~Cell::readerMask);
  cell.reader = readerOf(static_cast<uint32_t>(std::countr_zero(left)));
  cells.listReaders(cell);
  Epoch *const readers = cells.readersOf(cell);
  for (uint32_t i = 0; left; left &= left - 1, ++i) {
    readers[i] = {readerOf(static_cast<uint32_t>(std::countr_zero(left))), cell.read};
    if (i + 1 < cells.mostReaders())
      readers[i + 1] = {};
  }
}

void Shadow::noteWrite(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes) {
  cells.forgetReaders(cell);
  const bool together = cell.written == order.stampOf(visit.agent) && (cell.writer ^ visit.self) >> laneBits == 0;
  cell.written = order.stampOf(visit.agent);
  cell.writer = together && cell.writer != visit.self ? visit.self | allOfThem : visit.self;
  cell.writeLine = visit.line;
  cell.state &= static_cast<uint16_t>(~(Cell::strongWrite | Cell::engineWrote));
  cell.state |= static_cast<uint16_t>(bytes | (visit.strong ? Cell::strongWrite : 0) |
                                      (visit.kind == AccessKind::asyncWrite ? bytes << 4 : 0));
}

void Shadow::noteRead(const Visit &visit, Cells &cells, Cell &cell) {
  if (cell.state & Cell::manyBlocks)
    return;
  if (cell.state & Cell::readerMask)
    listMask(cells, cell);
  bool allBefore = true;
  if (cell.state & Cell::manyReaders && allReadBefore(visit, cell)) {
    allBefore = true;
  } else if (!(cell.state & Cell::manyReaders)) {
    allBefore = isBefore(visit, cell.read, cell.reader);
  } else {
    const Epoch *readers = cells.readersOf(cell);
    for (uint32_t i = 0; i < cells.mostReaders() && readers[i].time && allBefore; ++i)
      allBefore = isBefore(visit, readers[i].time, readers[i].agent);
  }
  const bool strongOnly = cell.state & Cell::strongRead;
  if (!allBefore && visit.strong && !strongOnly)
    return; // plain reads count more
  cell.readLine = visit.line;
  if (allBefore || (strongOnly && !visit.strong)) {
    cells.forgetReaders(cell);
    cell.reader = visit.self;
    if (visit.strong)
      cell.state |= Cell::strongRead;
  } else if (!(cell.state & Cell::manyReaders) && (cell.reader ^ visit.self) >> laneBits == 0) {
    if (cell.reader != visit.self)
      cell.reader |= allOfThem;
  } else {
    if (!(cell.state & Cell::manyReaders))
      cells.listReaders(cell);
    Epoch *readers = cells.readersOf(cell);
    uint32_t i = 0;
    while (i < cells.mostReaders() && readers[i].time && (readers[i].agent ^ visit.self) >> laneBits != 0)
      ++i;
    if (i == cells.mostReaders())
      return;
    if (!readers[i].time && i + 1 < cells.mostReaders())
      readers[i + 1] = {};
    const bool isAlone = isBefore(visit, readers[i].time, readers[i].agent);
    readers[i] = {isAlone ? visit.self : visit.self | allOfThem, order.stampOf(visit.agent)};
  }
  cell.read = order.stampOf(visit.agent);
  if (visit.self >> laneBits >= order.firstAgent() + static_cast<uint32_t>(order.warps()) && isShared(visit.begin))
    cell.state |= Cell::engineRead;
}

// --- Asynchronous copies -------------------------------------------------------------------------------------------

void Shadow::beginWrite(Warp &warp, const Step &step, int lane, char *at, uint32_t bytes) {
  LanePointers pointers;
  pointers.at[static_cast<size_t>(lane)] = at;
  access({warp, step, pointers, Mask{1} << lane, bytes, AccessKind::asyncWrite});
}

void Shadow::endWrite(int agent, int lane, char *at, uint32_t bytes) {
  const bool engine = agent >= order.warps();
  const uint32_t who = (order.firstAgent() + static_cast<uint32_t>(agent)) << laneBits | static_cast<uint32_t>(lane);
  const auto land = [&](Cell &cell, unsigned landed) {
    cell.state &= static_cast<uint16_t>(~(landed << 4));
    cell.state |= static_cast<uint16_t>(landed | (engine ? Cell::engineWrote : 0));
    cell.writer = who;
    cell.written = order.stampOf(agent);
  };
  forCells(at, bytes, [&](Cells &cells, Cell &cell, unsigned landed, char *) {
    if (!(cell.state & Cell::isSplit))
      return land(cell, landed);
    for (unsigned byte = 0; byte < 4; ++byte)
      if (landed >> byte & 1)
        land(cells.bytesOf(cell)[byte], 1);
  });
}

void Shadow::beginRead(Warp &warp, const Step &step, int lane, char *at, uint32_t bytes, int engine) {
  LanePointers pointers;
  pointers.at[static_cast<size_t>(lane)] = at;
  const Accesses accesses{warp, step, pointers, Mask{1} << lane, bytes};
  Visit visit{.accesses = &accesses, .warp = warp, .step = step, .lane = lane};
  visit.agent = warp.index;
  visit.self = engine < 0
                   ? (order.firstAgent() + static_cast<uint32_t>(warp.index)) << laneBits | static_cast<uint32_t>(lane)
                   : (order.firstAgent() + static_cast<uint32_t>(engine)) << laneBits;
  visit.reads = visit.byEngine = true;
  visit.line = shortLine(warp.place(step).line);
  visit.bytes = bytes;
  visit.begin = at;
  forCells(at, bytes, [&](Cells &cells, Cell &cell, unsigned read, char *place) {
    this->visit(visit, cells, cell, read, place);
    if (!(cell.state & Cell::isSplit))
      ++cell.leaving;
    else
      for (unsigned byte = 0; byte < 4; ++byte)
        cells.bytesOf(cell)[byte].leaving += read >> byte & 1;
  });
}

void Shadow::endRead(int agent, int lane, char *at, uint32_t bytes) {
  const uint32_t who = (order.firstAgent() + static_cast<uint32_t>(agent)) << laneBits | static_cast<uint32_t>(lane);
  const auto leave = [&](Cell &cell) {
    cell.leaving -= cell.leaving > 0;
    if (!(cell.state & (Cell::manyReaders | Cell::readerMask)) && cell.reader == who)
      cell.read = order.stampOf(agent);
  };
  forCells(at, bytes, [&](Cells &cells, Cell &cell, unsigned read, char *) {
    if (!(cell.state & Cell::isSplit))
      return leave(cell);
    for (unsigned byte = 0; byte < 4; ++byte)
      if (read >> byte & 1)
        leave(cells.bytesOf(cell)[byte]);
  });
}

} // namespace kiln::simulator
