// The facts about a launch's arguments that the compiler may use, as a short list of words. This part of the
// specialisation key is computed for every launch.

#pragma once

#include "lowering/Backend.h"
#include "runtime/Arguments.h"

#include <set>

namespace kiln {

/// The facts about one argument; one word encodes them.
struct Fact {
  bool isView = true;
  Type type = Type::f32;
  int rank = 0;
  int64_t innerStride = 1; // 0: not part of the specialisation
  int64_t alignment = 1;   // 1, 16 or 64
  bool stridesBy16 = false, extentBy16 = false;
  bool fits32 = false;

  uint64_t encode() const;
  static Fact decode(uint64_t word);
};

/// One word for each argument. Then one bit for each pair of views, in lexical order: 1 if they do not overlap. Then
/// the equalityBits(), and the extents that the kernel reads as constants.
using FactWords = llvm::SmallVector<uint64_t, 32>;

/// Whether a view satisfies `tile.fits_32`.
bool fits32(const std::vector<int64_t> &extents, const std::vector<int64_t> &strides, int64_t elementBytes);

/// The facts of these kinds about one argument. Facts of other kinds have their default.
Fact factOf(const Arg &arg, void *workspace, const lowering::FactKinds &kinds);

/// The bytes [low, high) from a view's first to its last element; empty for a view without elements.
struct Range {
  uintptr_t low = 0, high = 0;
  bool overlaps(const Range &other) const { return low < other.high && other.low < high; }
};
Range rangeOf(const Arg &arg, void *workspace);

/// The facts about these arguments, without extents. Workspace regions are inside `workspace`.
FactWords factsOf(const std::vector<Arg> &args, void *workspace, const lowering::FactKinds &kinds);
/// The facts that hold for both of two lists. Both are of `count` arguments with equal types and ranks.
FactWords commonFacts(const FactWords &a, const FactWords &b, size_t count);
/// The pairs (i < j) of view arguments that do not overlap, from the words of `count` arguments.
std::vector<std::pair<int, int>> disjointPairs(const FactWords &facts, size_t count);
/// The relevant bits of the words of a kernel with `count` arguments that uses the arguments `used` and writes those of
/// `written`. Bits of pairs that the kernel only reads, and of extents of arguments that it does not use, are
/// irrelevant.
FactWords relevantBits(const Kernel &kernel, const FactWords &facts, size_t count, const std::set<int> &used,
                       const std::set<int> &written);
/// Whether code for the relevant facts `known` is also valid for the relevant facts `facts`: they differ at most in
/// extents that are equal in `facts` and need not be equal for the code.
bool serves(const Kernel &kernel, const FactWords &known, const FactWords &facts, size_t count);
uint64_t hashOf(const FactWords &words);

/// A bit for each extent of a name except the name's first, in the kernel's order: whether it equals the first.
FactWords equalityBits(const Kernel &kernel, const std::vector<Arg> &args);
/// The named extents that are equal according to these bits, where there are two or more.
std::vector<Kernel::NamedExtent> equalExtents(const Kernel &kernel, const FactWords &bits);

} // namespace kiln
