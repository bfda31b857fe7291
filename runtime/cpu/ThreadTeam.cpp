// Calls threads, and calls those off again that did not come in time.

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
// Not std::atomic's wait(): libstdc++'s yields the core first, and the scheduler then keeps the thread away for a whole
// slice where anything else runs.

using Clock = std::chrono::steady_clock;

/// How long a thread looks out before it sleeps. Waking one takes about as long; between the launches of a training
/// step a few microseconds pass.
static constexpr std::chrono::microseconds lookout(50);
/// Pauses between two looks at the clock.
static constexpr int pausesALook = 16;
/// How long a thread does not look out after it lost its core to another.
static constexpr std::chrono::milliseconds modesty(20);

/// In a state: its waiter sleeps.
static constexpr uint32_t asleep = 1U << 31;

/// Whether the calling thread had to leave its core to another lately. A thread that spins there pays with the time
/// that it wants for work.
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

/// Returns when `state` is no longer `value`. One thread waits for a state at a time.
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

/// Makes `state` be `value`, and wakes who waits for that.
static void set(std::atomic<uint32_t> &state, uint32_t value) {
  if (state.exchange(value, std::memory_order_acq_rel) & asleep)
    syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// --- The team -------------------------------------------------------------------------------------------------------

static std::atomic<ThreadTeam *> processTeam = nullptr;

ThreadTeam &ThreadTeam::ofProcess() {
  // Never destroyed: its threads may be asleep in it when the process ends. After fork() they are not there any more.
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
      continue; // called off
    body();
    set(state, idle);
  }
}

void ThreadTeam::grow(size_t count) {
  try {
    while (workers.size() < count) {
      workers.push_back(nullptr); // first, so that nothing fails between a thread's start and its place here
      auto worker = std::make_unique<Worker>();
      std::thread(&Worker::serve, worker.get()).detach();
      workers.back() = std::move(worker);
    }
  } catch (const std::exception &) { // no thread or no memory to be had
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
