// Memory with nothing around it: a byte read or written beyond either end ends the test.

#pragma once

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

namespace kiln::test {

/// Two pages of memory that may not be touched, and one between them that may.
class GuardedPage {
public:
  GuardedPage() {
    pages = static_cast<char *>(::mmap(nullptr, 3 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::mprotect(pages + size, size, PROT_READ | PROT_WRITE), 0);
  }
  ~GuardedPage() { ::munmap(pages, 3 * size); }
  GuardedPage(const GuardedPage &) = delete;
  char *begin() const { return pages + size; }
  char *end() const { return pages + 2 * size; }

private:
  const int64_t size = ::sysconf(_SC_PAGESIZE);
  char *pages;
};

} // namespace kiln::test
