// The rules for registers that wgmma works on: nobody touches them from its issue until its group has been waited for,
// and what others wrote to them is fenced before.
//
// Every instruction of the function that touches such a register is known when the function is decoded; only those are
// watched.

#pragma once

#include "runtime/simulator/Program.h"

#include "runtime/simulator/WgmmaOperands.h"

#include <string>
#include <vector>

namespace kiln::simulator {

/// What a warp knows of the registers that its wgmmas use.
class WgmmaRules {
public:
  enum class Use : uint8_t { accumulator, operand };

  void fence();
  void commit() { ++committed; }
  /// All but the last `pending` groups are done.
  void wait(uint64_t pending);
  /// Notes a wgmma's use of the register at a place among the warp's registers; `shape` tells accumulators of one kind
  /// from others. Gives what was wrong.
  std::string use(uint64_t place, Use use, uint32_t shape, bool isRead);
  /// Another instruction touches a register. Gives what was wrong.
  std::string touch(uint64_t place, bool isWrite);
  /// A matrix in shared memory that a wgmma of the open group reads.
  void read(const MatrixDescriptor &matrix, const MatrixPart &part) { reads.push_back({committed, matrix, part}); }
  /// Calls `visit(matrix, part)` for each that is done now, and forgets it.
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
    uint64_t writtenAfter = 0; // fences before the last write by others, plus 1
  };
  struct Read {
    uint64_t group;
    MatrixDescriptor matrix;
    MatrixPart part;
  };
  bool inFlight(const Register &it) const { return it.group > retired; }
  Register &at(uint64_t place);
  std::vector<Register> registers; // by their place in the warp's registers
  std::vector<Read> reads;
  uint64_t fences = 0, committed = 0, retired = 0;
};

} // namespace kiln::simulator
