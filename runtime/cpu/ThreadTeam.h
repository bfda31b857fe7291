// Threads that wait for work between launches. A launch is often shorter than the time to wake a thread. So a thread
// that has just worked polls for the next launch for a short time before it sleeps. It does not poll if other threads
// are ready to run on its core. A launch waits only for threads that have begun to work on it. If a core is busy and
// its thread does not arrive, the other threads do its share.

#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"

#include <atomic>
#include <memory>
#include <vector>

namespace kiln {

class ThreadTeam {
public:
  /// The team of the process. It lives until the process ends; a child made by fork() has one of its own.
  static ThreadTeam &ofProcess();

  /// Calls `body` on the calling thread and on up to `threads` − 1 others, once on each, and returns when all that
  /// began have returned. Others may come late or never, so `body` must look for work until none is left. It must not
  /// throw: that ends the process. Where the system gives no more threads, fewer are called. Calls from several threads
  /// at once, or from within a body, are served: the one that finds the team at work does all by itself.
  void run(int threads, llvm::function_ref<void()> body) noexcept;

  ThreadTeam(const ThreadTeam &) = delete;

private:
  ThreadTeam() = default;
  ~ThreadTeam() = default; // only of a team that has no threads yet

  /// One thread of the team. Whoever moves `state` from `called` decides whether it takes part.
  struct alignas(64) Worker {
    enum State : uint32_t { idle, called, working };
    std::atomic<uint32_t> state = idle;
    llvm::function_ref<void()> body = nullptr; // while called or working
    void serve();
  };
  /// Starts threads until there are `count`, or the system gives no more.
  void grow(size_t count);

  std::atomic<bool> busy = false; // some call has the team, and may change `workers`
  std::vector<std::unique_ptr<Worker>> workers;
};

} // namespace kiln
