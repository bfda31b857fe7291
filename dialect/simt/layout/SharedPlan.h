// Conversions through shared memory: a placement of the elements in which neither stores nor loads have bank conflicts.
//
// The lowest bits V of an offset count the elements of a vector (or of a matrix row). The next bits, up to 128 bytes,
// select the banks, and the others the line. Within span(units outside V), let P be the units by which the lanes of one
// phase of a store differ, and Q those of a load. A store has no conflicts if and only if no sum of units of P is a
// line. So the lines are chosen as a common complement of P and Q (F2.h). Its sums a + b, of a unit of P and one of Q,
// are a swizzle.
//
// Units that are in registers in both layouts may be converted one after the other: one round of stores and loads for
// each of their values. That takes less memory.

#pragma once

#include "dialect/simt/layout/SharedAccess.h"

namespace kiln::simt {

/// Resources that a conversion may use.
struct SharedLimits {
  int64_t bytes = 48 * 1024;   // shared memory; there are as few rounds as fit in it
  bool hasLoadMatrix = true;   // ldmatrix: sm_75 and later
  bool hasStoreMatrix = false; // stmatrix: sm_90 and later
};

struct SharedPlan {
  F2Map offset; // core position to element offset, 0 for units that count rounds or blocks
  Vecs rounds;  // those units; bit i of a round's number is bit `round[i]` of the register in either access
  SharedAccess store, load;
  int64_t bytes = 0;          // of memory for one round of one core
  bool isWithinWarps = false; // each warp reads only its own writes, so a warp-level barrier suffices

  /// Wavefronts of all instructions for one warp and core.
  unsigned wavefronts() const { return store.wavefronts() + load.wavefronts(); }
};

/// The plan with the fewest wavefronts; among equals, with the fewest instructions, then with the fewest bytes. The
/// layouts have equal shapes, numbers of warps and block bases. `bits` is the size of an element, 8 to 64. If no plan
/// fits in `limits.bytes`, returns one with the fewest bytes. Threads whose values are copies may store them or not.
SharedPlan planShared(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits);

} // namespace kiln::simt
