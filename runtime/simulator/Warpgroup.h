// Warpgroups: four warps must execute equal wgmma instructions with equal operands, in one order. Each warp runs alone.
// The first warp at an instruction records it; the others are compared with the record.

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
  int left = warpsOfGroup;        // warps that have not reached it
  GroupColumns columns;           // B, once it was read
  bool hasColumns = false;
};

class Warpgroup {
public:
  /// The record of the next instruction of a warp (0 to 3 in the group). `isFirst` is set if this warp is the first at
  /// it.
  GroupInstruction &next(int warp, bool &isFirst);
  /// The warp has executed it. Instructions that all warps have executed are dropped.
  void done(int warp);
  /// The number of instructions that a warp has executed.
  uint64_t count(int warp) const { return counts[static_cast<size_t>(warp)]; }
  /// Whether other warps have not yet executed an instruction that this warp has.
  bool isAhead(int warp) const { return count(warp) > *std::min_element(counts.begin(), counts.end()); }

private:
  std::deque<GroupInstruction> instructions; // numbered from `begin`
  GroupColumns spare;                        // memory of the last dropped instruction, for reuse
  uint64_t begin = 0;
  std::array<uint64_t, warpsOfGroup> counts{};
};

} // namespace kiln::simulator
