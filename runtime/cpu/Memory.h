// Memory of the CPU device, for tensors and the threads' scratch memory.

#pragma once

#include <cstdint>

namespace kiln {

/// At least `bytes` of memory aligned to `alignment`, a power of two, to be released with std::free. Null if there is
/// not enough memory, or if `bytes` is negative; never null for 0 bytes. Large blocks use pages of 2 MB if the system
/// has them: a tile of a matrix with long rows accesses a different 4 KB page in every row, more pages than the TLB has
/// entries.
void *allocateMemory(int64_t bytes, int64_t alignment);

} // namespace kiln
