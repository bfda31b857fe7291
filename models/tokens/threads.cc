// Threads that take pieces from a common counter.

#include "models/tokens/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace kiln {

void workTogether(int threads, size_t count, const std::function<std::function<void(size_t)>()> &worker) {
  std::atomic<size_t> taken = 0;
  std::mutex lock;
  std::exception_ptr failed;
  const auto work = [&] {
    try {
      const std::function<void(size_t)> one = worker();
      for (size_t i = taken++; i < count; i = taken++)
        one(i);
    } catch (...) {
      const std::scoped_lock held(lock);
      failed = std::current_exception();
      taken = count;
    }
  };
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min<size_t>(threads, count); ++i)
      others.emplace_back(work);
    work();
  }
  if (failed)
    std::rethrow_exception(failed);
}

} // namespace kiln
