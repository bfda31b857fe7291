// Memory with nothing around it: a byte read or written beyond either end ends the test, or is reported.

#pragma once

#include "runtime/Device.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace kiln::test {

/// Two pages of inaccessible memory, and an accessible one between them. A GPU accesses only its own memory, so there,
/// and in the simulator, no pages surround it.
class GuardedPage {
public:
  explicit GuardedPage(Device &device)
      : device(device), owner(std::holds_alternative<GpuFacts>(device.target().facts) ? &device : nullptr) {
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
  int64_t bytes() const { return size; }

  /// The content of the page, from begin() to end(); and its replacement.
  std::vector<uint8_t> read() const {
    std::vector<uint8_t> contents(size);
    device.download(contents.data(), begin(), size);
    return contents;
  }
  void write(const std::vector<uint8_t> &contents) { device.upload(begin(), contents.data(), size); }

private:
  const int64_t size = ::sysconf(_SC_PAGESIZE);
  Device &device;
  Device *const owner; // null for pages of the host's
  char *pages;
};

} // namespace kiln::test
