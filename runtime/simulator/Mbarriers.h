// mbarrier objects: counts of arrivals and of bytes, and phases that end when both are complete.
//
// An object is 8 bytes of shared memory to the program, which must touch them with mbarrier instructions alone; its
// state is kept here. A phase ends when no arrival and no byte is pending; then the next one expects as many arrivals.

#pragma once

#include "runtime/simulator/Clock.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace kiln::simulator {

class Mbarriers {
public:
  static constexpr int64_t mostCount = (1 << 20) - 1;
  struct Object {
    int64_t expected = 0, pending = 0; // arrivals
    int64_t transactions = 0;          // bytes that are expected and have not come
    uint64_t phase = 0;                // phases that have ended
    uint32_t came = 0;                 // warps that have arrived in this one
    bool live = false;                 // false: invalidated
    Clock clock, ended;                // of those who have arrived; of the last phase that has ended
    Epoch made;                        // its init
    bool madeFenced = false;           // fence.mbarrier_init has come since
    /// What a waiting thread is given as the phase's name, and mbarrier.pending_count reads.
    uint64_t state() const { return phase << 20 | static_cast<uint64_t>(pending); }
    static uint64_t phaseOf(uint64_t state) { return state >> 20; }
    static uint64_t pendingOf(uint64_t state) { return state & mostCount; }
  };

  /// The object at a place of shared memory that may be used now; null when none was made, or it was invalidated.
  Object *find(uint32_t place);
  /// Why `find` gave nothing.
  const char *absence(uint32_t place) const;

  // Each says what was wrong, or nothing; a wrong operation does as much as makes sense.
  std::string init(uint32_t place, int64_t count);
  std::string invalidate(uint32_t place);
  std::string arrive(Object &object, int64_t count, bool drops);
  std::string expect(Object &object, int64_t bytes);
  std::string complete(Object &object, int64_t bytes) { return expect(object, -bytes); }
  /// fence.mbarrier_init of an agent of the launch.
  void fenceInits(uint32_t agent);
  /// Ends the phase when nothing is pending.
  void endIfDue(Object &object);

  /// Place of a live object that overlaps these bytes.
  std::optional<uint32_t> overlapping(uint32_t place, uint32_t bytes) const;
  /// Whether `overlapping` may find one there: quickly.
  bool mayOverlap(uint64_t place, uint64_t bytes) const {
    return live > 0 && place < last + 8 && place + bytes > first;
  }
  /// Phases that have ended, of all objects.
  int64_t ended() const { return ends; }

private:
  std::map<uint32_t, Object> objects;
  int live = 0;
  uint64_t first = ~uint64_t{0}, last = 0; // places of objects lie from here to there
  int64_t ends = 0;
};

} // namespace kiln::simulator
