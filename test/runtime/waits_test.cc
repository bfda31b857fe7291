// Programs that wait for others: a wait that can end does, and one that cannot becomes an error or a finding.

#include "dialect/dsl/Kernel.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "runtime/cpu/WaitWatch.h"
#include "test/expect_error.h"

#include <gtest/gtest.h>

#include <thread>

using namespace kiln;

namespace {

/// Program n waits for program n + `step`, if there is one, and then sets its flag.
void waitForOther(View flags, Tile step) {
  const Tile n = program_id(0), other = n + step;
  if_((other >= 0) & (other < num_programs(0)), [&] {
    for (Tile tries : repeat_while([&] { return atomic_load(flags, {other}) == 0; })) {
    }
  });
  atomic_store(flags, {n}, full(i32, {}, 1));
}
const Kernel waitForOtherKernel = kernel("wait_for_other", waitForOther);

class Waits : public testing::TestWithParam<const char *> {
protected:
  const std::shared_ptr<Device> device = Device::open(GetParam());

  /// Launches as many programs with flags of 0.
  void launchAll(int64_t programs, int64_t step) {
    const Tensor flags(device, i32, {programs});
    device->fillZero(flags.ref().data, flags.bytes());
    launch(*device, waitForOtherKernel, {programs, 1, 1}, {flags.ref(), step});
    device->synchronize();
    std::vector<int32_t> got(programs);
    flags.download(got.data(), flags.bytes());
    EXPECT_EQ(got, std::vector<int32_t>(programs, 1));
  }
};

// The programs before have begun, however many threads there are.
TEST_P(Waits, ForEarlierProgramsEnd) {
  for (const int threads : {1, 2, 4}) {
    device->setThreads(threads);
    launchAll(300, -1);
    launchAll(300, -3);
  }
}

// One thread never begins the next program; two begin two, and wait for the third.
TEST_P(Waits, ForLaterProgramsAreAnError) {
  for (const int threads : {1, 2}) {
    device->setThreads(threads);
    expectError([&] { launchAll(2 * threads, threads); },
                {"kernel 'wait_for_other' at ", "waits_test.cc:21: program 0 waits forever",
                 "runs " + std::to_string(threads) + " programs at a time"});
    launchAll(3, 7); // the next launch is not concerned
  }
}

/// Takes a lock that nobody releases; one program has it.
void lockForever(View lock) {
  for (Tile tries : repeat_while([&] { return atomic_compare_exchange(lock, {0}, 0, 1) == 1; })) {
  }
}
void exchangeForever(View lock) {
  for (Tile tries : repeat_while([&] { return atomic_exchange(lock, {0}, 1) == 1; })) {
  }
}
void setBitForever(View lock) {
  for (Tile tries : repeat_while([&] { return (atomic_or(lock, {0}, 4) & 4) != 0; })) {
  }
}
/// Takes any of four locks, only of those at even positions.
void lockSomeForever(View lock) {
  const Tile i = iota(4);
  for (Tile tries : repeat_while([&] {
         return all(atomic_compare_exchange(lock, {i}, full(i32, {4}, 0), full(i32, {4}, 1), Order::acq_rel,
                                            {.mask = (i & 1) == 0}) == 1 - (i & 1));
       })) {
  }
}
void waitForever(View lock) {
  for (Tile tries : repeat_while([&] { return atomic_load(lock, {0}) == 0; })) {
  }
}
void addForever(View lock) {
  for (Tile tries : repeat_while([&] { return atomic_add(lock, {0}, 0) == 0; })) {
  }
}
struct WarpsConfig {
  int warps = 1;
};
template <void (*wait)(View lock)> void waitAndStore(View lock, View out, WarpsConfig) {
  wait(lock);
  store(out, {program_id(0)}, 1);
}
template <void (*wait)(View lock)> Kernel waitKernel(const char *name) {
  return kernel(name, waitAndStore<wait>, {field("warps", &WarpsConfig::warps)});
}
const Kernel lockForeverKernel = waitKernel<lockForever>("lock_forever"),
             exchangeForeverKernel = waitKernel<exchangeForever>("exchange_forever"),
             setBitForeverKernel = waitKernel<setBitForever>("set_bit_forever"),
             lockSomeForeverKernel = waitKernel<lockSomeForever>("lock_some_forever"),
             waitForeverKernel = waitKernel<waitForever>("wait_forever"),
             addForeverKernel = waitKernel<addForever>("add_forever");
const Kernel *const foreverKernels[] = {&lockForeverKernel,     &exchangeForeverKernel, &setBitForeverKernel,
                                        &lockSomeForeverKernel, &waitForeverKernel,     &addForeverKernel};

// The simulator reports a deadlock of programs in loops, whether one warp is in the loop or several share what one
// reads.
TEST(Deadlocks, OfProgramsInLoopsAreReported) {
  const std::shared_ptr<Device> device = Device::open("simulator:sm_80");
  for (const Kernel *const kernel : foreverKernels)
    for (const char *const config : {"warps=1", "warps=4"}) {
      const Tensor lock(device, i32, {4}), out(device, i32, {3});
      device->fillZero(lock.ref().data, lock.bytes());
      expectError(
          [&] {
            launch(*device, *kernel, 3, {lock.ref(), out.ref()}, config);
            device->synchronize();
          },
          {"deadlock", "spin in a loop until memory changes"});
    }
}

// A lock that nobody releases is an error whatever atomic takes it.
TEST_P(Waits, ForLocksThatNobodyReleasesAreAnError) {
  for (const int threads : {1, 2})
    for (const Kernel *const kernel : foreverKernels) {
      device->setThreads(threads);
      const Tensor lock(device, i32, {4}), out(device, i32, {3});
      device->fillZero(lock.ref().data, lock.bytes());
      expectError(
          [&] {
            launch(*device, *kernel, 3, {lock.ref(), out.ref()});
            device->synchronize();
          },
          {"kernel '" + kernel->name + "' at ", "waits_test.cc:", " waits forever"});
    }
}

/// Waits, and fails if the wait has not ended by itself.
void waitAndCheck(View lock, View out) {
  waitForever(lock);
  device_assert(atomic_load(lock, {0}) == 1, "the lock is not free");
  store(out, {program_id(0)}, 1);
}
const Kernel waitAndCheckKernel = kernel("wait_and_check", waitAndCheck);

// After a wait is ended, no further program begins, and checks of those that run fail for the last time.
TEST_P(Waits, ThatAreEndedEndTheLaunch) {
  constexpr int64_t programs = 1000;
  device->setThreads(1);
  const Tensor lock(device, i32, {1}), out(device, i32, {programs});
  device->fillZero(lock.ref().data, lock.bytes());
  device->fillZero(out.ref().data, out.bytes());
  expectError(
      [&] {
        launch(*device, waitAndCheckKernel, programs, {lock.ref(), out.ref()});
        device->synchronize();
      },
      {" waits forever"});
  EXPECT_NO_THROW(device->synchronize());
  std::vector<int32_t> got(programs);
  out.download(got.data(), out.bytes());
  EXPECT_EQ(got.back(), 0);
}

/// Waits in each iteration of another loop; stores the number of iterations.
void waitInTurns(View lock, View out) {
  Tile turns = full(i32, {}, 0);
  for (Tile turn : repeat_while([&] { return (turns < 100000) & (atomic_load(lock, {1}) == 0); })) {
    waitForever(lock);
    turns = turns + 1;
  }
  store(out, {program_id(0)}, turns);
}
const Kernel waitInTurnsKernel = kernel("wait_in_turns", waitInTurns);

// After a wait is ended, so are the loops around it.
TEST_P(Waits, ThatAreEndedEndTheLoopsAroundThem) {
  const Tensor lock(device, i32, {2}), out(device, i32, {1});
  device->fillZero(lock.ref().data, lock.bytes());
  device->fillZero(out.ref().data, out.bytes());
  expectError(
      [&] {
        launch(*device, waitInTurnsKernel, 1, {lock.ref(), out.ref()});
        device->synchronize();
      },
      {" waits forever"});
  int32_t turns = 0;
  out.download(&turns, sizeof turns);
  EXPECT_LE(turns, 1);
}

/// Counts in turn under a lock, which a program takes and releases by exchanges or by compare-exchanges.
template <bool compares> void countLocked(View lock, View count) {
  for (Tile turn : range(0, 20)) {
    for (Tile tries : repeat_while([&] {
           return (compares ? atomic_compare_exchange(lock, {0}, 0, 1) : atomic_exchange(lock, {0}, 1)) == 1;
         })) {
    }
    store(count, {0}, load(count, {0}) + 1);
    atomic_exchange(lock, {0}, 0);
  }
}
const Kernel countByComparesKernel = kernel("count_by_compares", countLocked<true>),
             countByExchangesKernel = kernel("count_by_exchanges", countLocked<false>);

// A lock that is released is no wait that never ends.
TEST_P(Waits, ForLocksThatAreReleasedEnd) {
  for (const int threads : {1, 2, 4})
    for (const Kernel *const kernel : {&countByComparesKernel, &countByExchangesKernel}) {
      device->setThreads(threads);
      const Tensor lock(device, i32, {1}), count(device, i32, {1});
      device->fillZero(lock.ref().data, lock.bytes());
      device->fillZero(count.ref().data, count.bytes());
      launch(*device, *kernel, 100, {lock.ref(), count.ref()});
      device->synchronize();
      int32_t got = 0;
      count.download(&got, sizeof got);
      EXPECT_EQ(got, 2000);
    }
}

// A thread that returns before another reports its wait still counts.
TEST(WaitWatch, CountsThreadsThatHaveLeft) {
  WaitWatch watch(2);
  const WaitWatch::Scope present(watch);
  std::atomic<bool> hasCome = false;
  std::thread other([&] {
    const WaitWatch::Scope present(watch);
    hasCome = true;
    while (!WaitWatch::waits("kernel.cc:1", 1, true)) {
    }
  });
  while (!hasCome) {
  }
  while (!watch.hasGivenUp() && !WaitWatch::waits("kernel.cc:1", 0, true)) {
  }
  other.join();
  while (!WaitWatch::waits("kernel.cc:1", 0, true)) {
  }
  ASSERT_TRUE(watch.stuck());
  EXPECT_EQ(watch.stuck()->threads, 2);
  EXPECT_EQ(watch.stuck()->program, 0);
}

INSTANTIATE_TEST_SUITE_P(Cpus, Waits, testing::Values("cpu", "cpu:generic"));

} // namespace
