// Memory of the CPU device: what tensors and the threads' scratch memory are made of.

#pragma once

#include <cstdint>

namespace kiln {

/// At least `bytes` of memory aligned to `alignment`, a power of two, to be released with std::free; null when the
/// machine has no more, or when `bytes` is negative. Never null for 0 bytes. Large blocks lie on pages of 2 MB where
/// the system has them to give: a tile of a matrix with long rows touches another page of 4 KB in every row, more than
/// a core remembers the addresses of.
void *allocateMemory(int64_t bytes, int64_t alignment);

} // namespace kiln
