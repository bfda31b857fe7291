// The checks of memory accesses of a block: races, bytes without a value, bytes in flight, missing proxy fences.
//
// Each access is held against what its bytes' cells say (Cells.h) and what the thread has seen (Causality.h), then
// noted there. Asynchronous copies have two ends: from the first on, their bytes are in flight, and whoever touches
// them is wrong; at the second they count as accesses of a thread or an engine. When they move data is another matter.
//
//     barrier                      order.release(warp, clock) … order.acquire(warp, lanes, clock)
//     cp.async                     beginWrite(…) at its issue, endWrite(…, the warp, lane) when its thread has waited
//     copies to an mbarrier        beginWrite(…); then endWrite(…, engine) and order.release(engine, the phase's clock)
//     wgmma, copies from memory    beginRead(…), endRead(…)

#pragma once

#include "runtime/simulator/Access.h"
#include "runtime/simulator/Causality.h"
#include "runtime/simulator/Glance.h"
#include "runtime/simulator/GlobalShadow.h"

namespace kiln::simulator {

/// One instruction's accesses: `bytes` bytes at each lane, or as many of them as `sizes` says.
struct Accesses {
  Warp &warp;
  const Step &step;
  const LanePointers &pointers;
  Mask lanes = 0;
  uint32_t bytes = 0;
  AccessKind kind = AccessKind::read;
  const std::array<uint32_t, lanesOfWarp> *sizes = nullptr;
  /// Of a store: byte `byte` of what a lane writes. Threads that write the same value do not race.
  const StoredBytes *stored = nullptr;
};

class Shadow {
public:
  /// `number`: of the block in its launch. `shared`: its shared memory.
  Shadow(GlobalShadow &global, uint32_t number, int threads, char *shared, uint32_t sharedBytes);

  Causality order;

  /// Accesses to shared or global memory, which lies there and is aligned.
  void access(const Accesses &accesses);
  /// A strong read or write of words publishes or collects: `publish` before the access itself, `collect` after it.
  void publish(Warp &warp, const LanePointers &words, Ordering ordering);
  void collect(Warp &warp, const LanePointers &words, Ordering ordering);

  // --- Asynchronous copies -----------------------------------------------------------------------------------------
  // `bytes` bytes at `at` of shared or global memory; both are multiples of 4, or the bytes lie in one word.

  /// A lane starts a copy to these bytes.
  void beginWrite(Warp &warp, const Step &step, int lane, char *at, uint32_t bytes);
  /// It has landed: they were written, with values, by a lane of a warp or (lane 0) by an engine.
  void endWrite(int agent, int lane, char *at, uint32_t bytes);
  /// A lane starts an asynchronous read of these bytes, by another proxy than loads and stores; an engine does it, or
  /// (−1) the lane's warp.
  void beginRead(Warp &warp, const Step &step, int lane, char *at, uint32_t bytes, int engine = -1);
  /// It is done; what this lane of a warp, or (lane 0) the engine, does from here on comes after it.
  void endRead(int agent, int lane, char *at, uint32_t bytes);
  /// The same of many rows of 16 bytes that lane 0 of a warp reads: where in shared memory they begin. Those that lie
  /// outside count for nothing.
  void beginReads(Warp &warp, const Step &step, const std::vector<uint32_t> &rows);
  void endReads(int warp, const std::vector<uint32_t> &rows);

private:
  /// One lane's access.
  struct Visit {
    const Accesses *accesses;
    Warp &warp;
    const Step &step;
    int lane = 0;      // that is reported
    int agent = 0;     // of the block: a warp
    uint32_t self = 0; // agent of the launch << laneBits | lane or allOfThem
    AccessKind kind = AccessKind::read;
    bool reads = false, writes = false, strong = false;
    bool byEngine = false; // an asynchronous read
    uint16_t line = 0;
    uint32_t bytes = 0; // of the lane's access, which begins at `begin`
    const char *begin = nullptr;
  };
  template <class Function> void forCells(char *at, uint32_t bytes, Function function);
  static Visit visitOf(const Accesses &accesses);
  Row *rowAt(const char *at, uint32_t bytes);
  Glance glanceOf(int warp, AccessKind kind, uint16_t line) const;
  void visit(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes, char *at);
  void visitPart(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes, char *at);
  void checkRaces(const Visit &visit, Cells &cells, const Cell &cell, unsigned bytes, char *at);
  bool allReadBefore(const Visit &visit, const Cell &cell) const;
  void noteWrite(const Visit &visit, Cells &cells, Cell &cell, unsigned bytes);
  void listMask(Cells &cells, Cell &cell) const;
  /// A warp of the block as a reader, any of its lanes.
  uint32_t readerOf(uint32_t warp) const { return (order.firstAgent() + warp) << laneBits | allOfThem; }
  void noteRead(const Visit &visit, Cells &cells, Cell &cell);
  bool isBefore(const Visit &visit, Time time, uint32_t who) const;
  uint32_t firstChange(const Visit &visit, const Cell &cell, unsigned bytes, const char *at) const;
  void reportRace(const Visit &visit, const char *at, uint32_t other, bool otherWrote, uint16_t line);
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
  std::unordered_map<const char *, Clock> sharedWords; // that strong accesses synchronise by
  std::array<std::pair<uint64_t, GlobalShadow::Page *>, 512> recentPages{};
};

} // namespace kiln::simulator
