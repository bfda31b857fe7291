// Large blocks begin at a large page. Large pages are requested for the part that fills whole large pages; the rest
// uses small pages, so that a block never takes more memory than requested.

#include "runtime/cpu/Memory.h"

#include "runtime/AvailableMemory.h"

#include <algorithm>
#include <cstdlib>
#include <sys/mman.h>

namespace kiln {

static constexpr int64_t largePage = int64_t(2) << 20;

void *allocateMemory(int64_t bytes, int64_t alignment) {
  const int64_t boundary = bytes >= largePage ? std::max(largePage, alignment) : alignment;
  if (bytes < 0 || !isMemoryFor(bytes))
    return nullptr;
  void *memory = nullptr;
  if (posix_memalign(&memory, boundary, std::max<int64_t>(1, bytes)) != 0)
    return nullptr;
  if (bytes >= largePage)
    madvise(memory, bytes / largePage * largePage, MADV_HUGEPAGE); // advice only
  return memory;
}

} // namespace kiln
