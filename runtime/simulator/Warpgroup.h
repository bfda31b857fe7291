// What the four warps of a warpgroup do together: the same instructions with the same operands, in the same order. Each
// warp runs by itself; the first to come notes what it did, and the others are compared with it.

#pragma once

#include "runtime/simulator/WgmmaOperands.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <variant>

namespace kiln::simulator {

inline constexpr int warpsOfGroup = 4;

using GroupColumns = std::variant<ColumnOperand<float>, ColumnOperand<int32_t>>;

/// One instruction of a warpgroup.
struct GroupInstruction {
  int line = 0;                   // of the PTX text
  uint64_t first = 0, second = 0; // operands that must be equal: descriptors, a number
  int left = warpsOfGroup;        // warps that have not come to it
  GroupColumns columns;           // B, once it has been read
  bool hasColumns = false;
};

class Warpgroup {
public:
  /// The instruction that a warp (0 to 3 in the group) comes to next, as the first of them noted it; `isFirst` when
  /// this one is.
  GroupInstruction &next(int warp, bool &isFirst);
  /// The warp has done it. Instructions that all have done are forgotten.
  void done(int warp);
  /// Instructions that a warp has done.
  uint64_t count(int warp) const { return counts[static_cast<size_t>(warp)]; }
  /// Whether others are still to do what the warp has done.
  bool isAhead(int warp) const { return count(warp) > *std::min_element(counts.begin(), counts.end()); }

private:
  std::deque<GroupInstruction> instructions; // from number `begin`
  GroupColumns spare;                        // memory of the last that was forgotten
  uint64_t begin = 0;
  std::array<uint64_t, warpsOfGroup> counts{};
};

} // namespace kiln::simulator
