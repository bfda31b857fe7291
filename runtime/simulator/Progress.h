// Forward progress: the host threads of a launch agree on whether any part of it can still make progress.
//
// A *moment* of the launch is a count of changes. Each thread counts its own changes after it has made them, and before
// the turn of the CTA that made them ends. Counts never fall. So if a thread reads one moment twice, nobody has counted
// a change in between.
//
// A thread reads the moment M and gives a CTA a turn *at M*. The CTA is *stuck* at M if each of its paths does one of
// these in turns at M:
// - It waits for an event that only its own CTA can cause.
// - It has gone round a loop to a state that was kept since M was read.
// - It has polled many times without a change.
// All values that it has loaded since show the changes counted in M, and it will load equal values as long as M lasts.
//
// A thread is *quiet* at M if all its CTAs have been stuck in turns at M and none is left to begin. It gives no further
// turn until the moment has passed, so it makes no uncounted change.
//
// Suppose that every thread has reported quiet at M, and that the moment is still M (`quiet` checks it under a lock).
// Then no change is in progress, none was made since the paths have loaded, and none can follow: nothing in the launch
// can move. Weaker evidence is never enough, because a turn concerns exactly one moment.
//
// Then lanes that wait at a join are released. After that, lanes that wait at an instruction for others are released.
// If no thread has either, the launch is deadlocked. The thread that releases a lane advances the moment.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace kiln::simulator {

class Progress {
public:
  explicit Progress(size_t threads) : threads(threads) {}

  /// Counts a change by a CTA of the thread that others can see; called after the change.
  void note(size_t thread) { threads[thread].changes.fetch_add(1); }
  /// The present moment.
  uint64_t now() const {
    uint64_t sum = 0;
    for (const Thread &thread : threads)
      sum += thread.changes.load(std::memory_order_acquire);
    return sum;
  }

  enum class Answer : uint8_t { goOn, wait, deadlock };
  /// Reports a thread as quiet at a moment; it stays so until the moment has passed. Once all threads are quiet,
  /// `remedies` are tried in order, each after the ones before have helped no thread. A remedy returns whether it did
  /// anything.
  Answer quiet(size_t thread, uint64_t moment, const std::vector<std::function<bool()>> &remedies) {
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
  /// The thread has no CTAs any more.
  void leave(size_t thread) {
    const std::lock_guard lock(mutex);
    threads[thread].hasLeft = true;
  }
  /// Gives up the launch.
  void giveUp() { given = true; }
  bool isGivenUp() const { return given; }

private:
  struct alignas(64) Thread {
    std::atomic<uint64_t> changes = 0;
    uint64_t quietAt = 0; // 1 + the moment
    size_t tried = 0;     // number of remedies that did not help then
    bool hasLeft = false;
  };
  std::vector<Thread> threads;
  std::mutex mutex;
  std::atomic<bool> given = false;
};

} // namespace kiln::simulator
