// Counts the threads of a launch, those that wait, and those that have read memory since one of these two numbers
// changed last.

#include "runtime/cpu/WaitWatch.h"

#include "lowering/Abi.h"

namespace kiln {

/// The time for which a stuck launch still waits for threads that have not joined it: one of them might run the awaited
/// program.
static constexpr std::chrono::seconds patience(1);
/// Iterations of a waiting loop between two checks.
static constexpr uint64_t glance = 1024;

/// The state of the calling thread in its launch.
struct WaitWatch::Waiter {
  WaitWatch *watch = nullptr;
  bool isWaiting = false;
  uint64_t epoch = 0;
  uint64_t iterations = 0; // since that epoch
};
thread_local WaitWatch::Waiter WaitWatch::mine;

WaitWatch::Scope::Scope(WaitWatch &watch) {
  mine = {.watch = &watch};
  watch.change(1, 0);
}

WaitWatch::Scope::~Scope() {
  mine.watch->change(-1, mine.isWaiting ? -1 : 0);
  mine = {};
}

void WaitWatch::change(int morePresent, int moreWaiting) {
  const std::lock_guard lock(mutex);
  present += morePresent;
  waiting += moreWaiting;
  confirmed = 0;
  changed = std::chrono::steady_clock::now();
  ++epoch;
}

/// Gives up if every thread waits, and has read memory since the last change. `waiter` has done so.
void WaitWatch::giveUpIfStuck(Waiter &waiter) {
  const std::lock_guard lock(mutex);
  if (epoch != waiter.epoch || gaveUp)
    return;
  if (waiter.iterations == 1)
    ++confirmed;
  if (waiting != present || confirmed != present ||
      (present != team && std::chrono::steady_clock::now() - changed <= patience))
    return;
  threads = present; // recorded now, because the first of them may leave before another reports its position
  gaveUp = true;
}

int64_t WaitWatch::waits(const char *where, int64_t program, bool again) {
  Waiter &waiter = mine;
  WaitWatch *const watch = waiter.watch;
  if (!watch)
    return 0;
  if (!again && (watch->gaveUp || !waiter.isWaiting))
    return watch->gaveUp;
  if (again != waiter.isWaiting) {
    waiter.isWaiting = again;
    watch->change(0, again ? 1 : -1);
  }
  if (!again)
    return 0;
  if (const uint64_t now = watch->epoch; now != waiter.epoch) {
    waiter.epoch = now;
    waiter.iterations = 0;
    return 0;
  }
  ++waiter.iterations;
  if (!watch->gaveUp && (waiter.iterations == 1 || waiter.iterations % glance == 0))
    watch->giveUpIfStuck(waiter);
  if (!watch->gaveUp)
    return 0;
  const std::lock_guard lock(watch->mutex);
  if (!watch->first || program < watch->first->program)
    watch->first = Stuck{where, program, watch->threads};
  return 1;
}

} // namespace kiln

int64_t kiln_waits(const char *where, int64_t program, int64_t again) {
  return kiln::WaitWatch::waits(where, program, again != 0);
}
