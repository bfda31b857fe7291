// Rules for registers of wgmma. No other instruction may touch them from the issue until the wait for their group.
// Earlier writes by other instructions require wgmma.fence.
//
// Decoding a function finds every instruction that touches such a register; only these are watched.

#pragma once

#include "runtime/simulator/Program.h"

#include "runtime/simulator/WgmmaOperands.h"

#include <string>
#include <vector>

namespace kiln::simulator {

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

} // namespace kiln::simulator
