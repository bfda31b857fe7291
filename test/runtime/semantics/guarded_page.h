// Memory with nothing around it: a byte read or written beyond either end ends the test, or is reported.

#pragma once

#include "runtime/Device.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

namespace kiln::test {

/// Two pages of memory that may not be touched, and one between them that may. A simulated GPU takes no memory but its
/// own, which has nothing around it either.
class GuardedPage {
public:
  explicit GuardedPage(Device &device) : owner(device.name().starts_with("simulator:") ? &device : nullptr) {
    if (owner) {
      pages = static_cast<char *>(owner->allocate(size)) - size;
      return;
    }
    pages = static_cast<char *>(::mmap(nullptr, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mprotect(pages + size, size, PROT_READ | PROT_WRITE), 0);
  }
  ~GuardedPage() {
    if (owner)
      owner->release(begin());
    else
      ::munmap(pages, 3 * size);
  }
  GuardedPage(const GuardedPage &) = delete;
  char *begin() const { return pages + size; }
  char *end() const { return pages + 2 * size; }

private:
  const int64_t size = ::sysconf(_SC_PAGESIZE);
  Device *const owner;
  char *pages;
};

} // namespace kiln::test
