// Counts changes, whose sum is the present moment, and records the threads that are quiet at it.

#include "runtime/simulator/Progress.h"

#include <algorithm>

namespace kiln::simulator {

uint64_t Progress::now() const {
  uint64_t sum = 0;
  for (const Thread &thread : threads)
    sum += thread.changes.load(std::memory_order_acquire);
  return sum;
}

Progress::Answer Progress::quiet(size_t thread, uint64_t moment, const std::vector<std::function<bool()>> &remedies) {
  const std::lock_guard lock(mutex);
  if (now() != moment)
    return Answer::goOn;
  Thread &mine = threads[thread];
  if (mine.quietAt != moment + 1)
    mine.tried = 0;
  mine.quietAt = moment + 1;
  const auto haveTried = [&](size_t count) {
    return std::all_of(threads.begin(), threads.end(), [&](const Thread &other) {
      return other.hasLeft || (other.quietAt == moment + 1 && other.tried >= count);
    });
  };
  for (; mine.tried < remedies.size() && haveTried(mine.tried); ++mine.tried)
    if (remedies[mine.tried]()) {
      note(thread);
      return Answer::goOn;
    }
  return haveTried(remedies.size()) ? Answer::deadlock : Answer::wait;
}

void Progress::leave(size_t thread) {
  const std::lock_guard lock(mutex);
  threads[thread].hasLeft = true;
}

} // namespace kiln::simulator
