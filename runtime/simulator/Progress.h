// What the host's threads that run a launch know of each other: whether anything has changed, and whether anybody can
// still go on.
//
// A moment of the launch is a number of changes: each thread counts its own, after it has made them and before the
// turn of the block ends that made them. Counts never fall, so that whoever finds the same moment twice knows that
// nobody has counted anything between.
//
// Who may say that nothing can move? A thread reads the moment M, and gives a block a turn *at M*. The block is stuck
// at M when, in a turn at M, each of its paths waits for what only its own block does, or has come round a loop to the
// state that was kept since M was read, or has asked in vain many times in turns at M. So all that it has loaded since
// shows what M counts, and it will load the same again as long as M lasts. A thread is *quiet* at M when all its blocks
// have been stuck in turns at M, one after the other, and none is left to begin; from then on it gives no turn until
// the moment has passed, so it changes nothing that is not counted. Hence when each thread has said so of M, and the
// moment is M still (`quiet` looks, and nobody else speaks meanwhile), then no change is under way, none has been made
// since the paths have loaded, and none can be: nothing in the launch can move. Nobody concludes that from less: a turn
// asks about one moment only, that which its thread will speak of.
//
// Then lanes that wait at a join for others are let go, then those that wait at an instruction to be done together; and
// if no thread has either, it is a deadlock. Whoever finds any, moves the launch on.

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
  void note(size_t thread) { threads[thread].changes.fetch_add(1); }
  /// The moment.
  uint64_t now() const;

  enum class Answer : uint8_t { goOn, wait, deadlock };
  /// A thread is quiet at a moment, and stays so until it has passed. Each of `remedies` (which says whether it did
  /// anything) is tried once all threads are quiet and the ones before it have helped none of them.
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
