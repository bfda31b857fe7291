// Checks and updates cells.

#include "runtime/simulator/Shadow.h"

#include "runtime/simulator/Cta.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <optional>
#include <span>

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

/// A page, locked against other host threads if there are any.
struct HeldPage {
  GlobalShadow::Page *page = nullptr;
  const bool hasThreads;
  explicit HeldPage(const GlobalShadow &global) : hasThreads(global.hasThreads) {}
  HeldPage(const HeldPage &) = delete;
  ~HeldPage() { take(nullptr); }
  /// Releases the page, and locks another one.
  void take(GlobalShadow::Page *other) {
    if (other == page)
      return;
    if (page && hasThreads)
      page->held.unlock();
    page = other;
    if (page && hasThreads)
      page->held.lock();
  }
};
} // namespace

/// Calls function(cells, cell, its bytes, address of its first byte) for all cells that contain the bytes.
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
    HeldPage held(global);
    held.take(&pageOf(at));
    walk(held.page->cells, first, length);
    bytes -= length;
  }
}

// --- Accesses ------------------------------------------------------------------------------------------------------

static uint16_t shortLine(int line) { return static_cast<uint16_t>(line <= 0xffff ? line : 0); }

Glance Shadow::makeGlance(int warp, AccessKind kind, uint16_t line) const {
  return {.seen = order.seenBy(warp),
          .now = order.stampOf(warp),
          .first = order.firstAgent(),
          .agents = static_cast<uint32_t>(order.warps()) + Causality::engines,
          .line = line,
          .landing = static_cast<uint16_t>(kind == AccessKind::asyncWrite ? Cell::landing : 0),
          .together = kind == AccessKind::warpRead || kind == AccessKind::warpWrite,
          .blocksAreApart = !global.ordersBlocks(),
          .writes = !isRead(kind)};
}

/// Whether the bytes are on one page of global memory.
static bool isInPage(const char *at, uint64_t bytes) {
  return reinterpret_cast<uint64_t>(at) % pageBytes + bytes <= pageBytes;
}

static Mask lanesOfSize(const std::array<uint32_t, lanesOfWarp> &sizes, uint32_t bytes) {
  Mask lanes = 0;
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    lanes |= static_cast<Mask>(sizes[lane] == bytes) << lane;
  return lanes;
}

/// Whether all lanes access one or two words each, consecutively from the beginning of a row.
static bool isStretch(const Accesses &a) {
  const ptrdiff_t bytes = a.bytes;
  if ((bytes != 4 && bytes != 8) || a.lanes != allLanes || a.sizes || reinterpret_cast<uint64_t>(a.pointers.at[0]) % 16)
    return false;
  if (a.pointers.at[lanesOfWarp - 1] - a.pointers.at[0] != bytes * (lanesOfWarp - 1))
    return false;
  ptrdiff_t differences = 0;
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    differences |= a.pointers.at[lane] - a.pointers.at[0] - bytes * static_cast<ptrdiff_t>(lane);
  return differences == 0;
}

static bool isStrong(AccessKind kind) {
  return kind == AccessKind::atomic || kind == AccessKind::mbarrier || kind == AccessKind::strongRead ||
         kind == AccessKind::strongWrite;
}

Shadow::Visit Shadow::visitOf(const Accesses &a) {
  Visit visit{.accesses = &a, .warp = a.warp, .step = a.step, .agent = a.warp.index, .kind = a.kind};
  visit.reads = isRead(a.kind) || a.kind == AccessKind::atomic;
  visit.writes = !isRead(a.kind);
  visit.strong = isStrong(a.kind);
  visit.inBlock = a.inBlock;
  visit.line = shortLine(a.warp.place(a.step).line);
  return visit;
}

void Shadow::access(const Accesses &a) {
  const int warp = a.warp.index;
  const bool strong = isStrong(a.kind);
  Glance glance = makeGlance(warp, a.kind, shortLine(a.warp.place(a.step).line));
  const uint32_t agent = readerOf(static_cast<uint32_t>(warp)) & ~allOfThem;
  HeldPage held(global); // adjacent lanes usually use the same page
  const auto windowOf = [&](char *at) -> Window {
    const bool inShared = isShared(at);
    if (!inShared)
      held.take(&pageOf(at));
    glance.floor = inShared ? order.floorOf(warp) : 0;
    return inShared ? Window{shared, sharedMemory, sharedBytes}
                    : Window{held.page->cells, at - reinterpret_cast<uint64_t>(at) % pageBytes, pageBytes};
  };
  Mask left = a.lanes;
  const uint32_t lanesOfStretch = !strong && !glance.together && isStretch(a) ? 128 / a.bytes : 0;
  for (uint32_t lane = 0; left && lanesOfStretch; lane += lanesOfStretch) {
    char *const at = a.pointers.at[lane];
    if (!isShared(at) && !isInPage(at, 128))
      break;
    const Window window = windowOf(at);
    if (!glance.stretch(&window.cells.row(static_cast<uint64_t>(at - window.begin) / 16), agent | lane,
                        a.bytes == 4 ? Spread::words : Spread::pairs))
      break;
    left = lane + lanesOfStretch < lanesOfWarp ? allLanes << (lane + lanesOfStretch) : 0;
  }
  std::optional<Visit> whole; // rarely needed
  while (left) {
    const auto lane = static_cast<size_t>(std::countr_zero(left));
    const uint32_t bytes = a.sizes ? (*a.sizes)[lane] : a.bytes;
    char *const begin = a.pointers.at[lane];
    const bool isUsual = !strong && bytes > 0 && (isShared(begin) || isInPage(begin, bytes));
    if (isUsual && (reinterpret_cast<uint64_t>(begin) & (bytes - 1)) == 0) {
      const Mask alike = a.sizes ? lanesOfSize(*a.sizes, bytes) : allLanes;
      const Mask noted = (left & alike) ^ glance.lanes(windowOf(begin), a.pointers.at, left & alike, bytes, agent);
      left ^= noted;
      if (noted)
        continue;
    }
    left &= left - 1;
    Visit &visit = whole ? *whole : whole.emplace(visitOf(a));
    visit.lane = static_cast<int>(lane);
    visit.self = agent | (glance.together ? allOfThem : static_cast<uint32_t>(lane));
    visit.bytes = bytes;
    visit.begin = begin;
    if (!isUsual || bytes % 4) {
      held.take(nullptr);
      forCells(begin, bytes,
               [&](Cells &cells, Cell &cell, unsigned part, char *at) { this->visit(visit, cells, cell, part, at); });
      continue;
    }
    const Window window = windowOf(begin);
    const auto first = static_cast<uint64_t>(begin - window.begin) / 4;
    for (uint32_t word = 0; word < bytes / 4; ++word)
      if (Cell &cell = window.cells[first + word]; !glance.word(window.cells, cell, visit.self))
        this->visit(visit, window.cells, cell, Cell::valid, begin + size_t{4} * word);
  }
}

void Shadow::visit(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes, char *at) {
  if (bytes == Cell::valid && !(cell.state & Cell::isSplit))
    return visitPart(visit, cells, cell, bytes, at);
  if (!(cell.state & Cell::isSplit))
    cells.split(cell, bytes == 0x3 || bytes == 0xc ? 2 : 1);
  cells.forParts(cell, bytes, [&](Cell &part, unsigned own) {
    visitPart(visit, cells, part, own, at);
    at += std::popcount(own);
  });
  if (visit.writes && bytes == Cell::valid) {
    Cell whole = cell.parts()[0];
    whole.state |= Cell::valid;
    const bool landing = whole.state & Cell::landing;
    cells.unite(cell);
    cell = whole;
    if (landing)
      cell.state |= Cell::landing;
  }
}

/// Checks and records an access to bytes of a cell that is not split.
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
  cell.state |= static_cast<uint16_t>(bytes); // report it only once
}

// --- Races ---------------------------------------------------------------------------------------------------------

bool Shadow::isBefore(const Visit &visit, Time time, uint32_t who) const {
  if (time == 0)
    return true;
  const uint32_t lane = visit.self & allOfThem;
  return (who == visit.self && lane != allOfThem) ||
         order.isBefore({who >> laneBits, time}, visit.agent, lane == allOfThem ? -1 : static_cast<int>(lane));
}

/// The first byte for which a store writes another value than the present one. If a lower lane stores to the byte in
/// the same instruction, that lane's value is compared instead. The number of bytes if there is none.
uint32_t Shadow::firstChange(const Visit &visit, const Cell &cell, unsigned bytes, const char *at) const {
  const Accesses &all = *visit.accesses;
  const auto count = static_cast<uint32_t>(std::popcount(bytes));
  if (!all.stored)
    return 0;
  size_t other = lanesOfWarp; // a lower lane that writes there simultaneously
  if (cell.writer >> laneBits == visit.self >> laneBits)
    for (Mask left = all.lanes & ((Mask{1} << visit.lane) - 1); left; left &= left - 1)
      if (const auto lane = static_cast<size_t>(std::countr_zero(left));
          at >= all.pointers.at[lane] && at < all.pointers.at[lane] + all.bytes)
        other = lane;
  for (uint32_t i = 0; i < count; ++i) {
    const char *byte = at + i;
    const uint8_t mine = all.stored->byteOf(all.stored->context, visit.lane, static_cast<uint32_t>(byte - visit.begin));
    const uint8_t theirs = other < lanesOfWarp
                               ? all.stored->byteOf(all.stored->context, static_cast<int>(other),
                                                    static_cast<uint32_t>(byte - all.pointers.at[other]))
                               : static_cast<uint8_t>(*byte);
    if (mine != theirs)
      return i;
  }
  return count;
}

/// Whether a barrier of all warps came after the last read. It does not order reads by asynchronous engines.
bool Shadow::allReadBefore(const Visit &visit, const Cell &cell) const {
  return cell.read <= order.floorOf(visit.agent) && isShared(visit.begin) && !(cell.state & Cell::engineRead);
}

/// Reports an unordered strong access of another block if it, or the present strong access, has the scope of its own
/// block. Other kinds of races are reported by `checkRaces`. Records the present access if it has that scope.
void Shadow::checkScopes(const Visit &visit, Cells &cells, const Cell &cell, unsigned bytes, char *at) {
  const uint64_t address = reinterpret_cast<uint64_t>(at), word = address & ~uint64_t{3};
  const auto own = static_cast<uint8_t>(bytes << (address & 3));
  std::vector<BlockAccess> others = global.blockAccesses(word);
  bool isReported = false;
  for (const BlockAccess &other : others)
    if (!isReported && other.bytes & own && (visit.writes || other.writes))
      isReported = reportScope(visit, at, other.time, other.who, other.writes, other.line);
  if (!visit.inBlock)
    return;
  if (!isReported && cell.state & Cell::strongWrite)
    isReported = reportScope(visit, at, cell.written, cell.writer, true, cell.writeLine);
  if (!isReported && visit.writes && cell.state & Cell::strongRead) {
    const Epoch single[] = {{cell.reader, cell.read}};
    const bool isList = cell.state & Cell::manyReaders;
    const std::span<const Epoch> readers =
        isList ? std::span<const Epoch>(cells.readersOf(cell), cells.maxReaders()) : std::span<const Epoch>(single);
    for (size_t i = 0; i < readers.size() && readers[i].time && !isReported; ++i)
      isReported = reportScope(visit, at, readers[i].time, readers[i].agent, false, cell.readLine);
  }
  std::erase_if(others, [&](const BlockAccess &other) {
    return (visit.writes || !other.writes) && (other.bytes & ~own) == 0 &&
           ((other.who ^ visit.self) >> laneBits == 0 || isBefore(visit, other.time, other.who));
  });
  others.push_back({visit.self, order.stampOf(visit.agent), visit.line, own, visit.writes});
  global.setBlockAccesses(word, std::move(others));
}

void Shadow::checkRaces(const Visit &visit, Cells &cells, const Cell &cell, unsigned bytes, char *at) {
  if (visit.strong && !isShared(at))
    checkScopes(visit, cells, cell, bytes, at);
  if (!isBefore(visit, cell.written, cell.writer) && !(visit.strong && cell.state & Cell::strongWrite)) {
    const uint32_t change = visit.writes ? firstChange(visit, cell, bytes, at) : 0;
    if (change < static_cast<uint32_t>(std::popcount(bytes))) // a whole word is reported at its first byte
      return reportRace(visit, bytes == Cell::valid ? at : at + change, cell.writer, true, cell.writeLine);
  }
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
  for (uint32_t i = 0; i < cells.maxReaders() && readers[i].time; ++i)
    if (!isBefore(visit, readers[i].time, readers[i].agent))
      return reportRace(visit, at, readers[i].agent, false, cell.readLine);
}

/// Replaces a cell's mask of readers by a list.
void Shadow::listMask(Cells &cells, Cell &cell) const {
  uint32_t left = cell.reader;
  cell.state &= static_cast<uint16_t>(~Cell::readerMask);
  cell.reader = readerOf(static_cast<uint32_t>(std::countr_zero(left)));
  cells.listReaders(cell);
  Epoch *const readers = cells.readersOf(cell);
  for (uint32_t i = 0; left; left &= left - 1, ++i) {
    readers[i] = {readerOf(static_cast<uint32_t>(std::countr_zero(left))), cell.read};
    if (i + 1 < cells.maxReaders())
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
    for (uint32_t i = 0; i < cells.maxReaders() && readers[i].time && allBefore; ++i)
      allBefore = isBefore(visit, readers[i].time, readers[i].agent);
  }
  const bool strongOnly = cell.state & Cell::strongRead;
  if (!allBefore && visit.strong && !strongOnly)
    return; // plain reads take precedence
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
    while (i < cells.maxReaders() && readers[i].time && (readers[i].agent ^ visit.self) >> laneBits != 0)
      ++i;
    if (i == cells.maxReaders())
      return;
    if (!readers[i].time && i + 1 < cells.maxReaders())
      readers[i + 1] = {};
    const bool isAlone = isBefore(visit, readers[i].time, readers[i].agent);
    readers[i] = {isAlone ? visit.self : visit.self | allOfThem, order.stampOf(visit.agent)};
  }
  cell.read = order.stampOf(visit.agent);
  if (visit.self >> laneBits >= order.firstAgent() + static_cast<uint32_t>(order.warps()) && isShared(visit.begin))
    cell.state |= Cell::engineRead;
}

// --- Asynchronous copies -------------------------------------------------------------------------------------------

/// The row of shared memory with exactly these bytes, if one cell describes all its words; otherwise null.
inline Row *Shadow::rowAt(const char *at, uint32_t bytes) {
  const auto offset = static_cast<uint64_t>(at - sharedMemory);
  if (bytes != 16 || offset >= sharedBytes || offset % 16)
    return nullptr;
  Row &row = shared.row(offset / 16);
  return row.isApart && !shared.bringTogether(row) ? nullptr : &row;
}

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
  if (Row *const row = rowAt(at, bytes)) {
    land(row->all, Cell::valid);
    row->writers = Spread::none;
    return;
  }
  forCells(at, bytes, [&](Cells &cells, Cell &cell, unsigned landed, char *) {
    if (!(cell.state & Cell::isSplit))
      return land(cell, landed);
    cells.forParts(cell, landed, land);
  });
}

void Shadow::beginRead(Warp &warp, const Step &step, int lane, char *at, uint32_t bytes, int engine) {
  const uint32_t self =
      engine < 0 ? (order.firstAgent() + static_cast<uint32_t>(warp.index)) << laneBits | static_cast<uint32_t>(lane)
                 : (order.firstAgent() + static_cast<uint32_t>(engine)) << laneBits;
  const uint16_t line = shortLine(warp.place(step).line);
  LanePointers pointers;
  pointers.at[static_cast<size_t>(lane)] = at;
  const Accesses accesses{warp, step, pointers, Mask{1} << lane, bytes};
  Visit visit{.accesses = &accesses, .warp = warp, .step = step, .lane = lane};
  visit.agent = warp.index;
  visit.self = self;
  visit.reads = visit.byEngine = true;
  visit.line = line;
  visit.bytes = bytes;
  visit.begin = at;
  forCells(at, bytes, [&](Cells &cells, Cell &cell, unsigned read, char *place) {
    this->visit(visit, cells, cell, read, place);
    if (!(cell.state & Cell::isSplit))
      ++cell.leaving;
    else
      cells.forParts(cell, read, [](Cell &part, unsigned) { ++part.leaving; });
  });
}

void Shadow::endRead(int agent, int lane, char *at, uint32_t bytes) {
  const uint32_t who = (order.firstAgent() + static_cast<uint32_t>(agent)) << laneBits | static_cast<uint32_t>(lane);
  const auto leave = [&](Cell &cell) {
    cell.leaving -= cell.leaving > 0;
    if (!(cell.state & (Cell::manyReaders | Cell::readerMask)) && cell.reader == who)
      cell.read = order.stampOf(agent);
  };
  if (Row *const row = rowAt(at, bytes); row && row->readers == Spread::none)
    return leave(row->all);
  forCells(at, bytes, [&](Cells &cells, Cell &cell, unsigned read, char *) {
    if (!(cell.state & Cell::isSplit))
      return leave(cell);
    cells.forParts(cell, read, [&](Cell &part, unsigned) { leave(part); });
  });
}

// Rows without a finding take the fast path. The last fenced write is remembered, because most rows have one writer.
void Shadow::beginReads(Warp &warp, const Step &step, const std::vector<uint32_t> &rows) {
  const uint32_t self = readerOf(static_cast<uint32_t>(warp.index)) & ~allOfThem;
  Glance glance = makeGlance(warp.index, AccessKind::read, shortLine(warp.place(step).line));
  glance.floor = order.floorOf(warp.index);
  Epoch fenced; // known to be fenced
  for (const uint32_t place : rows) {
    if (place + 16 > sharedBytes)
      continue;
    char *const at = sharedMemory + place;
    Row *const row = rowAt(at, 16);
    const auto isFenced = [&] {
      const Epoch written{row->all.writer >> laneBits, row->all.written};
      const bool isKnown = written.agent == fenced.agent && written.time == fenced.time;
      if (!isKnown && !order.isFenced(written, warp.index))
        return false;
      fenced = written;
      return true;
    };
    if (row && (row->all.state & Cell::engineWrote || isFenced()) && glance.readRow(*row, self, Spread::none))
      ++row->all.leaving;
    else
      beginRead(warp, step, 0, at, 16);
  }
}

void Shadow::endReads(int warp, const std::vector<uint32_t> &rows) {
  for (const uint32_t place : rows)
    if (place + 16 <= sharedBytes)
      endRead(warp, 0, sharedMemory + place, 16);
}

} // namespace kiln::simulator
