// Finds out that a launch cannot end, because each thread runs a program that waits for programs which have not begun.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace kiln {

/// The waits of one launch. A program waits in a loop that changes no memory, and calls kiln_waits() after each
/// iteration. If all threads wait, and each has read memory once more since the last of them began to, nothing can
/// change any more.
class WaitWatch {
public:
  /// Of a launch on up to `team` threads.
  explicit WaitWatch(int team) : team(team) {}

  /// The calling thread takes part until the object dies.
  struct Scope {
    explicit Scope(WaitWatch &watch);
    ~Scope();
    Scope(const Scope &) = delete;
  };

  struct Stuck {
    std::string where; // file:line of the loop
    int64_t program = 0;
    int threads = 0; // that took part
  };
  /// The waiting program with the lowest number, if the launch was stuck. Its results are then of no use.
  std::optional<Stuck> stuck() const { return first; }
  /// Whether waits are ended. No further program may begin.
  bool hasGivenUp() const { return gaveUp; }

  /// kiln_waits() of the calling thread: whether its loop must end. `again` says that the loop only waits and would go
  /// on.
  static int64_t waits(const char *where, int64_t program, bool again);

private:
  struct Waiter;
  void giveUpIfStuck(Waiter &waiter);
  void change(int present, int waiting);

  static thread_local Waiter mine;

  const int team;
  std::atomic<bool> gaveUp = false;
  std::atomic<uint64_t> epoch = 0; // counts changes of the next two
  std::mutex mutex;                // guards the members below
  int present = 0, waiting = 0;
  int confirmed = 0; // threads that have read memory since the last change
  int threads = 0;   // present when the launch was given up
  std::chrono::steady_clock::time_point changed;
  std::optional<Stuck> first;
};

} // namespace kiln
