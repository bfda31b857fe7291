// Checks the memory accesses of a CTA: races, uninitialised bytes, bytes in flight, missing proxy fences.
//
// Each access is compared with the cells of its bytes (Cells.h) and with the thread's vector clock (Causality.h), then
// recorded in the cells. An asynchronous copy has two ends. From its begin its bytes are in flight, and any access to
// them is an error. At its end it counts as an access of a thread or an engine. The time at which data moves is
// independent of this.
//
//     barrier                      order.release(warp, clock) … order.acquire(warp, lanes, clock)
//     cp.async                     beginWrite(…) at its issue, endWrite(…, the warp, lane) when its thread has waited
//     copies to an mbarrier        beginWrite(…); then endWrite(…, engine) and order.release(engine, the phase's clock)
//     wgmma, copies from memory    beginRead(…), endRead(…)

#pragma once

#include "runtime/simulator/Access.h"
#include "runtime/simulator/Causality.h"
#include "runtime/simulator/Cells.h"
#include "runtime/simulator/Program.h"

namespace kiln::simulator {

// --- The fast path --------------------------------------------------------------------------------------------------
//
// An access takes it if no copy to that memory is in flight, and if for every lane the last access was its own or
// happened before. Other accesses change nothing here; Shadow handles them.

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

// --- All accesses --------------------------------------------------------------------------------------------------

/// The accesses of one instruction: `bytes` bytes per lane, or as many as `sizes` says.
struct Accesses {
  Warp &warp;
  const Step &step;
  const LanePointers &pointers;
  Mask lanes = 0;
  uint32_t bytes = 0;
  AccessKind kind = AccessKind::read;
  const std::array<uint32_t, lanesOfWarp> *sizes = nullptr;
  /// For a store: byte `byte` of a lane's value. Threads that write equal values do not race.
  const StoredBytes *stored = nullptr;
  bool inBlock = false; // a strong access whose scope is the block
};

class Shadow {
public:
  /// `number` is the index of the CTA in its launch, `shared` its shared memory.
  Shadow(GlobalShadow &global, uint32_t number, int threads, char *shared, uint32_t sharedBytes);

  Causality order;

  /// Checks and records accesses to shared or global memory that are in bounds and aligned.
  void access(const Accesses &accesses);
  /// A strong read or write of words. Call `publish` before the access and `collect` after it. `inBlock`: its scope is
  /// the block.
  void publish(Warp &warp, const LanePointers &words, Ordering ordering, bool inBlock);
  void collect(Warp &warp, const LanePointers &words, Ordering ordering, bool inBlock);

  // --- Asynchronous copies -----------------------------------------------------------------------------------------
  // `bytes` bytes at `at` in shared or global memory. Both are multiples of 4, or the bytes are in one word.

  /// A lane starts a copy to these bytes.
  void beginWrite(Warp &warp, const Step &step, int lane, char *at, uint32_t bytes);
  /// The copy has landed: a lane of a warp or (lane 0) an engine has written the bytes.
  void endWrite(int agent, int lane, char *at, uint32_t bytes);
  /// A lane starts an asynchronous read of these bytes through another proxy than loads and stores. The reader is an
  /// engine, or (−1) the lane's warp.
  void beginRead(Warp &warp, const Step &step, int lane, char *at, uint32_t bytes, int engine = -1);
  /// The read is done. Later accesses of this lane of a warp, or (lane 0) of the engine, come after it.
  void endRead(int agent, int lane, char *at, uint32_t bytes);
  /// Asynchronous reads of rows of 16 bytes by lane 0 of a warp; `rows` are offsets in shared memory. Rows out of
  /// bounds are ignored.
  void beginReads(Warp &warp, const Step &step, const std::vector<uint32_t> &rows);
  void endReads(int warp, const std::vector<uint32_t> &rows);

private:
  /// One lane's access.
  struct Visit {
    const Accesses *accesses;
    Warp &warp;
    const Step &step;
    int lane = 0;      // for reports
    int agent = 0;     // a warp of the CTA
    uint32_t self = 0; // agent of the launch << laneBits | lane or allOfThem
    AccessKind kind = AccessKind::read;
    bool reads = false, writes = false, strong = false, inBlock = false;
    bool byEngine = false; // an asynchronous read
    uint16_t line = 0;
    uint32_t bytes = 0; // of the lane's access, which begins at `begin`
    const char *begin = nullptr;
  };
  template <class Function> void forCells(char *at, uint32_t bytes, Function function);
  static Visit visitOf(const Accesses &accesses);
  Row *rowAt(const char *at, uint32_t bytes);
  Glance makeGlance(int warp, AccessKind kind, uint16_t line) const;
  void visit(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes, char *at);
  void visitPart(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes, char *at);
  void checkRaces(const Visit &visit, Cells &cells, const Cell &cell, unsigned bytes, char *at);
  void checkScopes(const Visit &visit, Cells &cells, const Cell &cell, unsigned bytes, char *at);
  bool reportScope(const Visit &visit, const char *at, Time time, uint32_t who, bool otherWrote, uint16_t line);
  bool isOfAnotherBlock(uint32_t who) const {
    return (who >> laneBits) - order.firstAgent() >= static_cast<uint32_t>(order.warps()) + Causality::engines;
  }
  bool allReadBefore(const Visit &visit, const Cell &cell) const;
  void noteWrite(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes);
  void listMask(Cells &cells, Cell &cell) const;
  /// A warp of the CTA as a reader: any of its lanes.
  uint32_t readerOf(uint32_t warp) const { return (order.firstAgent() + warp) << laneBits | allOfThem; }
  void noteRead(const Visit &visit, Cells &cells, Cell &cell);
  bool isBefore(const Visit &visit, Time time, uint32_t who) const;
  uint32_t firstChange(const Visit &visit, const Cell &cell, unsigned bytes, const char *at) const;
  void reportRace(const Visit &visit, const char *at, uint32_t other, bool otherWrote, uint16_t line,
                  const char *why = "nothing orders the two");
  void report(const Visit &visit, Check check, const char *at, const char *what);
  std::string placeText(const Cta &cta, const char *at) const;
  bool isShared(const char *at) const { return at >= sharedMemory && at < sharedMemory + sharedBytes; }
  GlobalShadow::Page &pageOf(const char *at);
  Others othersFrom(const Clock &clock) const;
  Clock clockFrom(const Others &others) const;

  GlobalShadow &global;
  char *sharedMemory;
  uint32_t sharedBytes;
  Cells shared;
  std::unordered_map<const char *, Clock> blockWords; // used for synchronisation within the block
  std::array<std::pair<uint64_t, GlobalShadow::Page *>, 512> recentPages{};
};

} // namespace kiln::simulator
