// Memory for buffers that live for a while: lifetimes in, offsets out. Buffers that are never alive together share
// bytes. Numbers alone, no IR: a kernel's scratch (cpu/AllocateScratch.cpp) and the activations of a training step
// (models/nn/arena.h) are placed here.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kiln::lowering {

/// A buffer's size, and the first and the last moment at which it holds a value; none when `last` is before `first`.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0, last = -1;
  bool meets(const Lifetime &other) const { return std::max(first, other.first) <= std::min(last, other.last); }
};

/// An offset for each buffer, in their order, and the largest end of any.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
};

/// Offsets at which no two buffers that share a moment share bytes: the smallest of a few placements, each of which
/// puts one buffer after the other into the lowest gap that is free all its life (larger ones first; in the order of
/// their first moments; …). Depends on the lifetimes alone, and sums of sizes are offsets: sizes that are multiples of
/// an alignment keep it. Takes n² steps at worst.
Placement place(const std::vector<Lifetime> &lifetimes);

/// Bytes that are alive at one moment at most: no placement takes less, unless a buffer that is never alive is larger.
int64_t mostAlive(const std::vector<Lifetime> &lifetimes);

} // namespace kiln::lowering
