// Functions of newer system libraries that LLVM and the standard library's headers call. The libkiln.so of a wheel has
// its own, so it runs with glibc 2.34 and libstdc++ of GCC 11 (Ubuntu 22.04, RHEL 9). The library does not show them.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <random>

#include <pthread.h>

/// glibc 2.36.
extern "C" uint32_t arc4random() noexcept { return std::random_device()(); }

/// GCC 12 gave it another version (GLIBCXX_3.4.30).
void std::condition_variable::wait(std::unique_lock<std::mutex> &lock) {
  if (pthread_cond_wait(native_handle(), lock.mutex()->native_handle()) != 0)
    std::terminate();
}
