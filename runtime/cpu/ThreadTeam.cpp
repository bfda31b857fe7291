// Wakes threads, and cancels those that do not arrive in time.

#include "runtime/cpu/ThreadTeam.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace kiln {

// --- Waiting --------------------------------------------------------------------------------------------------------
//
// Not std::atomic::wait(): libstdc++ yields the core first, and then a busy scheduler suspends the thread for a whole
// time slice.

using Clock = std::chrono::steady_clock;

/// How long a thread spins before it sleeps; waking takes about as long. Launches of a training step are a few
/// microseconds apart.
static constexpr std::chrono::microseconds lookout(50);
/// Pause instructions between two reads of the clock.
static constexpr int pausesALook = 16;
/// How long a thread does not spin after it was preempted.
static constexpr std::chrono::milliseconds modesty(20);

/// A bit of a state: its waiter sleeps.
static constexpr uint32_t asleep = 1U << 31;

/// Whether the calling thread was preempted recently. Spinning would then use up the time slice that it needs for work.
static bool losesItsCore(Clock::time_point now) {
  static thread_local long switches = 0;
  static thread_local Clock::time_point until;
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  if (usage.ru_nivcsw != switches) {
    switches = usage.ru_nivcsw;
    until = now + modesty;
  }
  return now < until;
}

/// Returns when `state` is no longer `value`. At most one thread waits for a state.
static void waitWhile(std::atomic<uint32_t> &state, uint32_t value) {
  const Clock::time_point begin = Clock::now();
  if (!losesItsCore(begin))
    do
      for (int i = 0; i < pausesALook; ++i) {
        if (state.load(std::memory_order_acquire) != value)
          return;
        _mm_pause();
      }
    while (Clock::now() - begin < lookout);
  uint32_t seen = value;
  if (!state.compare_exchange_strong(seen, value | asleep, std::memory_order_acquire))
    return;
  while (state.load(std::memory_order_acquire) == (value | asleep))
    syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, value | asleep, nullptr, nullptr, 0);
}

/// Sets `state` to `value`, and wakes its waiter.
static void set(std::atomic<uint32_t> &state, uint32_t value) {
  if (state.exchange(value, std::memory_order_acq_rel) & asleep)
    syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// --- The team -------------------------------------------------------------------------------------------------------

static std::atomic<ThreadTeam *> processTeam = nullptr;

ThreadTeam &ThreadTeam::ofProcess() {
  // Never destroyed, because its threads may sleep in it when the process ends. After fork() there are no threads.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { processTeam = nullptr; });
  (void)registered;
  ThreadTeam *team = processTeam.load(std::memory_order_acquire);
  if (team)
    return *team;
  auto *const fresh = new ThreadTeam;
  if (processTeam.compare_exchange_strong(team, fresh))
    return *fresh;
  delete fresh; // another thread was faster
  return *team;
}

void ThreadTeam::Worker::serve() {
  for (;;) {
    waitWhile(state, idle);
    uint32_t expected = called;
    if (!state.compare_exchange_strong(expected, working, std::memory_order_acquire))
      continue; // cancelled
    body();
    set(state, idle);
  }
}

void ThreadTeam::grow(size_t count) {
  try {
    while (workers.size() < count) {
      workers.push_back(nullptr); // first, so that nothing can fail after the thread's start
      auto worker = std::make_unique<Worker>();
      std::thread(&Worker::serve, worker.get()).detach();
      workers.back() = std::move(worker);
    }
  } catch (const std::exception &) { // no thread or no memory available
    if (!workers.empty() && !workers.back())
      workers.pop_back();
  }
}

void ThreadTeam::run(int threads, llvm::function_ref<void()> body) noexcept {
  if (threads <= 1 || busy.exchange(true, std::memory_order_acquire))
    return body();
  const size_t others = static_cast<size_t>(threads) - 1;
  grow(others);
  const size_t team = std::min(others, workers.size());
  for (size_t i = 0; i < team; ++i) {
    workers[i]->body = body;
    set(workers[i]->state, Worker::called);
  }
  body();
  for (size_t i = 0; i < team; ++i) {
    uint32_t expected = Worker::called;
    if (!workers[i]->state.compare_exchange_strong(expected, Worker::idle, std::memory_order_acquire))
      waitWhile(workers[i]->state, Worker::working);
  }
  busy.store(false, std::memory_order_release);
}

} // namespace kiln
