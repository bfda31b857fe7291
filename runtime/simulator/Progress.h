// What the host's threads that run a launch know of each other: whether anything has changed, and whether anybody can
// still go on.
//
// A moment of the launch is a number of changes. A thread is *quiet* at a moment when none of its blocks can go on
// unless memory changes. When all are quiet at one moment, nothing in the launch can move: then lanes that wait at a
// join for others are let go, then those that wait at an instruction to be done together; and if there are none of
// either, it is a deadlock. Whoever finds any, moves the launch on.

#pragma once

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

  /// A thread's blocks have changed something that others can see; after they have done it.
  void note(size_t thread) {
    threads[thread].changes.fetch_add(1);
  }
  /// The moment.
  uint64_t now() const;

  enum class Answer : uint8_t { goOn, wait, deadlock };
  /// A thread is quiet at a moment. Each of `remedies` (which says whether it did anything) is tried once all threads
  /// are quiet and the ones before it have helped none of them.
  Answer quiet(size_t thread, uint64_t moment, const std::vector<std::function<bool()>> &remedies);
  /// A thread has no blocks any more.
  void leave(size_t thread);
  /// The launch is given up.
  void giveUp() { given = true; }
  bool isGivenUp() const { return given; }

private:
  struct alignas(64) Thread {
    std::atomic<uint64_t> changes = 0;
    uint64_t quietAt = 0; // 1 + the moment
    size_t tried = 0;     // remedies that did not help then
    bool hasLeft = false;
  };
  std::vector<Thread> threads;
  std::mutex mutex;
  std::atomic<bool> given = false;
};

} // namespace kiln::simulator
