// Ranks as threads of one process, of which one runs at a time. Their results are those of processes.

#pragma once

#include "dialect/dsl/Types.h"
#include "models/parallel/collective.h"

#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

namespace kiln::test {

/// Runs `each` on so many ranks, and throws the first error. Ranks that wait for the failed one end, too.
class ThreadRanks {
public:
  static void run(int size, const std::function<void(std::shared_ptr<Collective>)> &each) {
    ThreadRanks world(size);
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r)
      threads.emplace_back([&, r] {
        std::unique_lock lock(world.mutex);
        world.held.at(r) = &lock;
        try {
          each(std::make_shared<Rank>(world, r));
        } catch (...) {
          if (!world.failure)
            world.failure = std::current_exception();
          world.changed.notify_all();
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    if (world.failure)
      std::rethrow_exception(world.failure);
  }

private:
  enum class What { exchange, gather, broadcast };
  struct Call {
    What what;
    const void *from;
    void *to;
    int64_t bytes;
  };

  class Rank : public Collective {
  public:
    Rank(ThreadRanks &world, int number) : world(world), number(number) {}
    int rank() const override { return number; }
    int size() const override { return static_cast<int>(world.calls.size()); }
    int localRank() const override { return number; }
    int localSize() const override { return size(); }
    using Collective::broadcast;
    void exchange(const void *from, void *to, int64_t bytes) override {
      world.meet(number, {What::exchange, from, to, bytes});
    }
    void gather(void *all, int64_t bytes) override { world.meet(number, {What::gather, nullptr, all, bytes}); }
    void broadcast(void *data, int64_t bytes) override { world.meet(number, {What::broadcast, nullptr, data, bytes}); }

  private:
    ThreadRanks &world;
    const int number;
  };

  explicit ThreadRanks(int size) : calls(size), held(size) {}

  /// Waits until all ranks call; the last one does the work for all.
  void meet(int rank, const Call &call) {
    calls.at(rank) = call;
    const int64_t round = rounds;
    if (++arrived == std::ssize(calls)) {
      arrived = 0;
      ++rounds;
      work();
      return changed.notify_all();
    }
    changed.wait(*held.at(rank), [&] { return rounds != round || failure; });
    if (rounds == round)
      throw Error("another rank has ended", Fault::device);
  }
  void work() {
    for (size_t r = 0; r < calls.size(); ++r) {
      const Call &mine = calls[r];
      for (size_t other = 0; other < calls.size(); ++other) {
        const Call &from = calls[other];
        if (mine.what != from.what || mine.bytes != from.bytes)
          throw Error("the ranks call different things", Fault::internal);
        char *const to = static_cast<char *>(mine.to) + other * mine.bytes;
        if (mine.what == What::exchange)
          std::memcpy(to, static_cast<const char *>(from.from) + r * mine.bytes, mine.bytes);
        else if (mine.what == What::gather && r != other)
          std::memcpy(to, static_cast<const char *>(from.to) + other * mine.bytes, mine.bytes);
        else if (mine.what == What::broadcast && other == 0 && r != 0)
          std::memcpy(mine.to, from.to, mine.bytes);
      }
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Call> calls;
  std::vector<std::unique_lock<std::mutex> *> held;
  int64_t arrived = 0, rounds = 0;
  std::exception_ptr failure;
};

} // namespace kiln::test
