// cp.async: copies from global to shared memory that land later.
//
// Each thread has groups of its own. A copy lands when its thread waits for its group at the latest (`late`), when it
// is issued (`early`), or at a random moment between. Until then its bytes hold a pattern that no right program reads.

#pragma once

#include "runtime/simulator/Program.h"

#include <array>
#include <optional>
#include <vector>

namespace kiln::simulator {

/// When asynchronous copies land.
enum class Delivery : uint8_t { late, early, random };

class AsyncCopies {
public:
  /// One instruction's copies, of `bytes` bytes a lane; of which the first `sizes[lane]` come from `from`, the rest are
  /// 0.
  struct Copy {
    Mask lanes = 0;   // that have not waited for it
    Mask pending = 0; // of these, those whose bytes have not landed
    uint32_t bytes = 0;
    std::array<char *, lanesOfWarp> to;
    std::array<const char *, lanesOfWarp> from;
    std::array<uint32_t, lanesOfWarp> sizes, groups;
    std::array<int, lanesOfWarp> engines; // that lands a lane's part, −1: nobody but the lane itself
    uint64_t number = 0;
    const ptx::Place *place = nullptr; // of the instruction
  };
  /// Takes a copy of the warp's, whose groups and number are set here.
  void issue(Copy copy, Delivery delivery, uint64_t seed);
  void commit(Mask lanes);
  /// The lanes of the warp wait until at most `pending` of their groups have not landed.
  void wait(Warp &warp, Mask lanes, uint32_t pending);
  /// Lands everything of the lanes, in groups or not.
  void waitAll(Warp &warp, Mask lanes);
  /// The lanes leave: reports what they have not waited for.
  void leave(Warp &warp, Mask lanes);
  /// Bytes of the lanes' copies that they have not waited for.
  int64_t bytesPending(Mask lanes) const;
  /// Copies issued so far.
  uint64_t issued() const { return number; }
  /// From here on `engine`, which completes a barrier, lands what the lane has issued and no other engine lands. All
  /// engines that land copies of the lane: whoever has waited for the barrier may read what each of them wrote.
  const std::vector<int> &assign(size_t lane, int engine);
  /// Lands those of the first `count` copies that are of the lanes.
  void landFirst(Warp &warp, Mask lanes, uint64_t count);

private:
  /// Lands what is due; lanes that wait for it themselves see what engines wrote.
  template <class Due> void land(Warp &warp, Mask lanes, bool waits, Due due);
  std::vector<Copy> copies;                          // in the order of their issue
  std::array<uint32_t, lanesOfWarp> committed{};     // groups of each lane
  std::array<std::vector<int>, lanesOfWarp> engines; // of each lane
  uint64_t number = 0;
};

} // namespace kiln::simulator
