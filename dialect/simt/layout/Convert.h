// Conversions from one layout of a tile to another, by the cheapest means.
//
// A plan describes one core and is executed for each repeat. Its register numbers are those of the core; the stored
// index of a repeat is larger by repeat · 2^(register bits).

#pragma once

#include "dialect/simt/layout/SharedAccess.h"
#include "dialect/simt/layout/Shuffle.h"

#include <variant>

namespace kiln::simt {

// --- Through shared memory -------------------------------------------------------------------------------------------

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

// --- By the cheapest means -------------------------------------------------------------------------------------------

struct ConvertPlan {
  Tier tier = Tier::identity;
  std::variant<ShufflePlan, SharedPlan> how; // a SharedPlan if the tier is Tier::shared

  bool isShared() const { return tier == Tier::shared; }
  const ShufflePlan &shuffle() const { return std::get<ShufflePlan>(how); }
  const SharedPlan &shared() const { return std::get<SharedPlan>(how); }
};

/// The cost of the two barriers around an exchange through shared memory, in instructions.
inline constexpr unsigned barriersWorth = 32;

/// The cheapest conversion between two layouts with equal shapes, numbers of warps and block bases. `bits` is the size
/// of an element, 8 to 64. Shuffles usually cost less than shared memory: with whole 32-bit words there are at most
/// half as many shuffles as wavefronts. There are two exceptions: narrow elements that do not fill words, and lanes
/// that select among many words. The latter occurs when a blocked tile becomes an operand of products; the selections
/// then cost more than shared memory with its barriers.
ConvertPlan planConvert(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits);

} // namespace kiln::simt
