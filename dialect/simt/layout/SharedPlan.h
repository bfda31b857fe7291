// Conversions through shared memory: where each element lies in between, such that neither stores nor loads conflict.
//
// An offset's lowest bits V count the elements of a vector (or of a matrix row), the next ones, up to 128 bytes, choose
// the banks, the rest the line. Within span(units outside V), let P be what one phase of a store tells lanes apart by,
// and Q of a load. A store is free of conflicts if and only if no sum of P's is a line, so the lines are chosen as a
// common complement of P and Q (F2.h): its sums a + b, of one of P and one of Q, are what others call a swizzle.
//
// Units that both layouts have in registers need not be there at the same time: storing and loading in rounds, one for
// each of their values, takes less memory.

#pragma once

#include "dialect/simt/layout/SharedAccess.h"

namespace kiln::simt {

/// What a conversion may use.
struct SharedLimits {
  int64_t bytes = 48 * 1024;   // as few rounds are made as fit into these
  bool hasLoadMatrix = true;   // ldmatrix: sm_75 and later
  bool hasStoreMatrix = false; // stmatrix: sm_90 and later
};

struct SharedPlan {
  F2Map offset; // core position to element offset, 0 for units that count rounds or blocks
  Vecs rounds;  // those units; bit i of a round's number is bit `round[i]` of the register in either access
  SharedAccess store, load;
  int64_t bytes = 0;          // of memory for one round, a core
  bool isWithinWarps = false; // each warp reads what it wrote: a barrier of the warp will do

  /// Of all instructions a warp and core.
  unsigned wavefronts() const { return store.wavefronts() + load.wavefronts(); }
};

/// The plan with the fewest wavefronts, of those the one with the fewest instructions, of those the one with the fewest
/// bytes. Layouts are of one shape and one number of warps, with the same bases of blocks, `bits` of an element 8
/// to 64. When none fits `limits.bytes`, a plan with the fewest bytes. Threads whose values are copies may store or
/// not.
SharedPlan planShared(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits);

} // namespace kiln::simt
