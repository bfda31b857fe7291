// What a launch's arguments tell the compiler, as a short list of words: the part of the specialisation key that is
// computed for every launch.

#pragma once

#include "lowering/Backend.h"
#include "runtime/Arguments.h"

#include <set>

namespace kiln {

/// The facts of one argument, in one word each.
struct Fact {
  bool isView = true;
  Type type = Type::f32;
  int rank = 0;
  int64_t innerStride = 1; // 0: one that is not told
  int64_t alignment = 1;   // 1, 16 or 64
  bool stridesBy16 = false, extentBy16 = false;
  bool fits32 = false;

  uint64_t encode() const;
  static Fact decode(uint64_t word);
};

/// One word for each argument, then one bit for each pair of views, in lexical order, that do not overlap; then the
/// extents asked for, when there are any.
using FactWords = llvm::SmallVector<uint64_t, 32>;

/// Whether a view is as `tile.fits_32` says.
bool fits32(const std::vector<int64_t> &extents, const std::vector<int64_t> &strides, int64_t elementBytes);

/// The facts of one argument, of the kinds that somebody reads. The others are as if nothing were known.
Fact factOf(const Arg &arg, void *workspace, const lowering::FactKinds &kinds);

/// The bytes [low, high) from a view's first element to its last; empty for a view without elements.
struct Range {
  uintptr_t low = 0, high = 0;
  bool overlaps(const Range &other) const { return low < other.high && other.low < high; }
};
Range rangeOf(const Arg &arg, void *workspace);

/// The facts of these arguments, without extents. Workspace regions lie in `workspace`.
FactWords factsOf(const std::vector<Arg> &args, void *workspace, const lowering::FactKinds &kinds);
/// What is true of both, which are facts of arguments of the same types and ranks; `count` of them.
FactWords commonFacts(const FactWords &a, const FactWords &b, size_t count);
/// The pairs (i < j) of view arguments that do not overlap by the words of `count` arguments.
std::vector<std::pair<int, int>> disjointPairs(const FactWords &facts, size_t count);
/// The bits of these words, of `count` arguments, that say something to a kernel that writes the arguments `written`:
/// all but those of pairs of which it writes neither.
FactWords tellingBits(const FactWords &facts, size_t count, const std::set<int> &written);
/// A hash of the words.
uint64_t hashOf(const FactWords &words);

} // namespace kiln
