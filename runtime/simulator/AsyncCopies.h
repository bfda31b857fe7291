// cp.async: copies from global to shared memory that land later.
//
// Each thread has its own groups. A copy lands when its thread waits for its group (`late`), when it is issued
// (`early`), or at a random moment in between. Until then its bytes hold a pattern, so that a wrong program gives wrong
// results.

#pragma once

#include "runtime/simulator/Program.h"

#include <array>
#include <optional>
#include <vector>

namespace kiln::simulator {

/// The time at which asynchronous copies land.
enum class Delivery : uint8_t { late, early, random };

class AsyncCopies {
public:
  /// The copies of one instruction, `bytes` bytes per lane. The first `sizes[lane]` bytes come from `from`; the rest
  /// are 0.
  struct Copy {
    Mask lanes = 0;   // lanes that have not waited for it
    Mask pending = 0; // lanes of these whose bytes have not landed
    uint32_t bytes = 0;
    std::array<char *, lanesOfWarp> to;
    std::array<const char *, lanesOfWarp> from;
    std::array<uint32_t, lanesOfWarp> sizes, groups;
    std::array<int, lanesOfWarp> engines; // the engine that lands a lane's part; −1: only the lane itself
    uint64_t number = 0;
    const ptx::Place *place = nullptr; // of the instruction
  };
  /// Takes a copy of the warp and sets its groups and number.
  void issue(Copy copy, Delivery delivery, uint64_t seed);
  void commit(Mask lanes);
  /// The lanes wait until at most `pending` of their groups have not landed.
  void wait(Warp &warp, Mask lanes, uint32_t pending);
  /// Lands all copies of the lanes, in groups or not.
  void waitAll(Warp &warp, Mask lanes);
  /// The lanes exit: reports copies that they have not waited for.
  void leave(Warp &warp, Mask lanes);
  /// Bytes of the lanes' copies that they have not waited for.
  int64_t bytesPending(Mask lanes) const;
  /// Copies issued so far.
  uint64_t issued() const { return number; }
  /// Assigns to `engine`, which completes a barrier, the landing of copies of the lane that no engine lands yet.
  /// Returns all engines that land copies of the lane: after waiting for the barrier, a thread may read the bytes that
  /// each of them wrote.
  const std::vector<int> &assign(size_t lane, int engine);
  /// Lands those of the first `count` copies that belong to the lanes.
  void landFirst(Warp &warp, Mask lanes, uint64_t count);

private:
  /// Lands the copies that are due. Lanes that wait for a copy themselves see the writes of engines.
  template <class Due> void land(Warp &warp, Mask lanes, bool waits, Due due);
  std::vector<Copy> copies;                          // in the order of issue
  std::array<uint32_t, lanesOfWarp> committed{};     // number of groups per lane
  std::array<std::vector<int>, lanesOfWarp> engines; // per lane
  uint64_t number = 0;
};

} // namespace kiln::simulator
