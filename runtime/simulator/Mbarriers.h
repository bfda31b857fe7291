// mbarrier objects: counts of arrivals and of bytes (tx-count), and phases that end when both are complete.
//
// For the program an object is 8 bytes of shared memory, which only mbarrier instructions may touch; its state is kept
// here. A phase ends when no arrival and no byte is pending. The next phase expects as many arrivals.

#pragma once

#include "runtime/simulator/Causality.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace kiln::simulator {

class Mbarriers {
public:
  static constexpr int64_t maxCount = (1 << 20) - 1;
  struct Object {
    int64_t expected = 0, pending = 0; // arrivals
    int64_t transactions = 0;          // pending bytes (tx-count)
    uint64_t phase = 0;                // number of completed phases
    uint32_t came = 0;                 // warps that have arrived in this phase
    bool live = false;                 // false: invalidated
    Clock clock, ended;                // of the arrivals; of the last completed phase
    Epoch made;                        // its init
    bool madeFenced = false;           // fence.mbarrier_init has run since
    /// The state that a waiting thread gets, and that mbarrier.pending_count reads.
    uint64_t state() const { return phase << 20 | static_cast<uint64_t>(pending); }
    static uint64_t phaseOf(uint64_t state) { return state >> 20; }
    static uint64_t pendingOf(uint64_t state) { return state & maxCount; }
  };

  /// The live object at a place of shared memory; null if there is none or it was invalidated.
  Object *find(uint32_t place);
  /// The reason why `find` returned null.
  const char *absence(uint32_t place) const;

  // Each returns an error message or an empty text. An invalid operation has as much effect as makes sense.
  std::string init(uint32_t place, int64_t count);
  std::string invalidate(uint32_t place);
  std::string arrive(Object &object, int64_t count, bool drops);
  std::string expect(Object &object, int64_t bytes);
  std::string complete(Object &object, int64_t bytes) { return expect(object, -bytes); }
  /// fence.mbarrier_init of an agent of the launch.
  void fenceInits(uint32_t agent);
  /// Ends the phase if nothing is pending.
  void endIfDue(Object &object);

  /// The place of a live object that overlaps these bytes.
  std::optional<uint32_t> overlapping(uint32_t place, uint32_t bytes) const;
  /// A quick test: false if `overlapping` finds nothing.
  bool mayOverlap(uint64_t place, uint64_t bytes) const {
    return live > 0 && place < last + 8 && place + bytes > first;
  }
  /// The number of completed phases of all objects.
  int64_t ended() const { return ends; }

private:
  std::map<uint32_t, Object> objects;
  int live = 0;
  uint64_t first = ~uint64_t{0}, last = 0; // the range of places of objects
  int64_t ends = 0;
};

} // namespace kiln::simulator
