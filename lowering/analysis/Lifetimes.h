// Computes offsets of buffers in one block of memory from their lifetimes. Buffers whose lifetimes do not overlap share
// bytes. It uses numbers, not IR. It serves the scratch memory of a kernel (cpu/AllocateScratch.cpp) and the
// activations of a training step (models/nn/arena.h).

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kiln::lowering {

/// A buffer's size, and the first and the last time at which it is live. If `last` < `first`, it is never live.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0, last = -1;
  bool meets(const Lifetime &other) const { return std::max(first, other.first) <= std::min(last, other.last); }
};

/// An offset for each buffer, in order, and the size of the block: the largest end of a buffer.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

/// Offsets at which no two buffers with overlapping lifetimes overlap. It tries a few orders of the buffers (larger
/// ones first, by first time, …) and returns the smallest placement. In each order, a buffer gets the lowest gap that
/// is free during its lifetime. The result depends only on the lifetimes. Offsets are sums of sizes, so they are
/// aligned if all sizes are multiples of the alignment. Takes n² steps in the worst case.
Placement place(const std::vector<Lifetime> &lifetimes);

/// The maximum number of bytes that are live at one time: a lower bound of a placement's size, without buffers that are
/// never live.
int64_t maxAlive(const std::vector<Lifetime> &lifetimes);

} // namespace kiln::lowering
