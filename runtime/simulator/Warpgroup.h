// Rules of wgmma for the warps of a warpgroup, and for registers.

#pragma once

#include "runtime/simulator/Program.h"
#include "runtime/simulator/WgmmaOperands.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace kiln::simulator {

// --- Warps ----------------------------------------------------------------------------------------------------------
//
// The four warps must execute equal wgmma instructions with equal operands, in one order. Each warp runs alone. The
// first warp at an instruction records it; the others are compared with the record.

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

/// Compares an instruction of a warpgroup with the record of its other warps. `first` and `second` must be equal.
/// Reports differences, and missing lanes of the warp.
GroupInstruction &agree(Warp &warp, const Step &step, uint64_t first, uint64_t second);

// --- Registers -----------------------------------------------------------------------------------------------------
//
// No other instruction may touch them from the issue until the wait for their group.
// Earlier writes by other instructions require wgmma.fence.
//
// Decoding a function finds every instruction that touches such a register; only these are watched.

/// The state of the registers that a warp's wgmmas use.
class WgmmaRules {
public:
  enum class Use : uint8_t { accumulator, operand };

  void fence();
  void commit() { ++committed; }
  /// Completes all groups except the last `pending`.
  void wait(uint64_t pending);
  /// Records a wgmma's use of a register, by its place in the warp's registers. `shape` distinguishes kinds of
  /// accumulators. Returns the error, if any.
  std::string use(uint64_t place, Use use, uint32_t shape, bool isRead);
  /// Another instruction touches a register. Returns the error, if any.
  std::string touch(uint64_t place, bool isWrite);
  /// Records a matrix in shared memory that a wgmma of the open group reads.
  void read(const MatrixDescriptor &matrix, const MatrixPart &part) { reads.push_back({committed, matrix, part}); }
  /// Calls `visit(matrix, part)` for each completed read, and drops it.
  template <class Visit> void forgetReads(Visit visit) {
    std::erase_if(reads, [&](const Read &it) {
      if (it.group < retired)
        visit(it.matrix, it.part);
      return it.group < retired;
    });
  }
  bool everFenced() const { return fences > 0; }

private:
  struct Register {
    uint64_t group = 0; // of the last wgmma that uses it, plus 1
    Use use = Use::accumulator;
    uint32_t shape = 0;
    uint64_t writtenAfter = 0; // number of fences before the last write by others, plus 1
  };
  struct Read {
    uint64_t group;
    MatrixDescriptor matrix;
    MatrixPart part;
  };
  bool inFlight(const Register &it) const { return it.group > retired; }
  Register &at(uint64_t place);
  std::vector<Register> registers; // by place in the warp's registers
  std::vector<Read> reads;
  uint64_t fences = 0, committed = 0, retired = 0;
};

/// Runs a step that touches registers of a wgmma, after checking WgmmaRules.
void runWatched(Warp &warp, const Step &step);

} // namespace kiln::simulator
