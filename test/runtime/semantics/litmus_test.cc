// Litmus tests of the order that atomics establish between programs of one launch. In each test programs access one
// memory concurrently, and the test checks that no outcome occurred that the memory orders forbid. Every other outcome
// is allowed, so no test depends on timing. Long loops of other atomics only make concurrent accesses likely.

#include "runtime/simulator/SimulatorDevice.h"
#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Litmus : public Semantics {
protected:
  /// Calls `test` under every order of programs of the device: numbers of threads, schedules of a simulator. With
  /// `races`, programs may race if the forbidden outcome does not occur, so the simulator does not check for that.
  void everyWay(const std::function<void(int64_t patience)> &test, bool races = false) {
    if (auto simulator = std::dynamic_pointer_cast<SimulatorDevice>(device)) {
      for (const char *order : {"forward", "reverse", "random"})
        for (const char *seed : {"1", "2", "3"}) {
          SCOPED_TRACE(std::string(order) + " " + seed);
          simulator->setSchedule(std::string(races ? "check=all,-race-programs" : "check=all") + " order=" + order +
                                 " seed=" + seed);
          test(20);
        }
      return;
    }
    const int threads = device->threads();
    for (const int count : {1, 2, threads}) {
      SCOPED_TRACE(std::to_string(count) + " threads");
      device->setThreads(count);
      for (int round = 0; round < 3; ++round)
        test(device->name().rfind("cpu", 0) == 0 ? 100000 : 20);
    }
    device->setThreads(threads);
  }

  Tensor zeros(Type type, Shape extents) {
    int64_t count = 1;
    for (const int64_t extent : extents)
      count *= extent;
    return tensor(type, extents, Raw(count, 0));
  }
};

struct OrderConfig {
  int order = 3;
};
std::vector<Field> orderField() { return {field("order", &OrderConfig::order)}; }
std::string orderText(Order order) { return "order=" + std::to_string(static_cast<int>(order)); }

void pause(View other, const Tile &rounds) {
  for (Tile k : range(0, rounds))
    atomic_add(other, {program_id(0)}, full(i32, {1}, 1));
}

constexpr int wide = 64;

// --- A load stays before a release -----------------------------------------------------------------------------------

/// Program 0 reads x, counts itself with an order that releases, and stores the value. The others overwrite x once they
/// have acquired its count.
void overwriteReleased(View x, View flag, View other, View y, Tile rounds, OrderConfig cfg) {
  if_(
      program_id(0) == 0,
      [&] {
        Tile t = load(x, {0}, {wide});
        atomic_add(flag, {0}, full(i32, {1}, 1), static_cast<Order>(cfg.order));
        pause(other, rounds);
        store(y, {0}, t);
      },
      [&] {
        for (Tile k : range(0, rounds)) {
          Tile seen = atomic_add(flag, {0}, full(i32, {1}, 0), Order::acquire);
          if_(reshape(seen, {}) > 0, [&] { store(x, {0}, full(i32, {wide}, 5)); });
        }
      });
}
const Kernel overwriteReleasedKernel = kernel("overwrite_released", overwriteReleased, orderField());

TEST_P(Litmus, ALoadStaysBeforeARelease) {
  for (const Order order : {Order::release, Order::acq_rel})
    everyWay([&](int64_t patience) {
      const Tensor x = zeros(i32, {wide}), flag = zeros(i32, {1}), other = zeros(i32, {2}), y = counting(i32, {wide});
      launch(overwriteReleasedKernel, {x.ref(), flag.ref(), other.ref(), y.ref(), patience}, orderText(order), 2);
      EXPECT_EQ(read(y), Raw(wide, 0));
    });
}

// --- A store stays behind an acquire ---------------------------------------------------------------------------------

/// Program 0 multiplies, acquires the flag and then stores the product. Program 1 reads there and then releases the
/// flag.
void storeAcquired(View a, View flag, View other, View y, View out, Tile rounds, OrderConfig cfg) {
  if_(
      program_id(0) == 0,
      [&] {
        Tile t = load(a, {0, 0}, {16, 16}), d = dot(t, t);
        pause(other, rounds);
        Tile seen = atomic_add(flag, {0}, full(i32, {1}, 0), static_cast<Order>(cfg.order));
        store(y, {0, 0}, d);
        store(out, {0}, seen);
      },
      [&] {
        pause(other, rounds / 2);
        Tile r = load(y, {0, 0}, {16, 16});
        atomic_add(flag, {0}, full(i32, {1}, 1), Order::release);
        store(out, {1}, reshape(cast(reduce_max(reduce_max(r)), i32), {1}));
      });
}
const Kernel storeAcquiredKernel = kernel("store_acquired", storeAcquired, orderField());

TEST_P(Litmus, AStoreStaysBehindAnAcquire) {
  for (const Order order : {Order::acquire, Order::acq_rel})
    everyWay(
        [&](int64_t patience) {
          const Tensor a = tensor(f32, {16, 16}, Raw(256, rawOfReal(f32, 1))), flag = zeros(i32, {1}),
                       other = zeros(i32, {2}), y = zeros(f32, {16, 16}), out = zeros(i32, {2});
          launch(storeAcquiredKernel, {a.ref(), flag.ref(), other.ref(), y.ref(), out.ref(), patience},
                 orderText(order), 2);
          const Raw got = read(out);
          EXPECT_FALSE(got[0] == 1 && got[1] != 0) << "who saw the flag wrote before the other had read";
          EXPECT_EQ(read(y), Raw(256, rawOfReal(f32, 16)));
        },
        /*races=*/true);
}

// --- Message passing along a chain of programs -----------------------------------------------------------------------

/// Each program reads the previous one's value, if it sees its flag, and stores it plus one.
void passOn(View data, View flags, View got, View other, Tile rounds) {
  Tile p = program_id(0), one = full(i32, {1}, 1);
  pause(other, rounds * p);
  Tile seen = atomic_add(flags, {p - 1}, full(i32, {1}, 0), Order::acquire);
  Tile begun = load(data, {p, 0}, {1, wide}) * 0;
  if_(reshape(seen, {}) > 0, [&] { begun = load(data, {p - 1, 0}, {1, wide}); }, [&] { begun = begun + cast(p, i32); });
  store(data, {p, 0}, begun + 1);
  atomic_add(flags, {p}, one, Order::release);
  store(got, {p, 0}, begun);
}
const Kernel passOnKernel = kernel("pass_on", passOn);

TEST_P(Litmus, WhatWasStoredBeforeAReleaseIsThereBehindTheAcquire) {
  const int64_t programs = 8;
  everyWay([&](int64_t patience) {
    const Tensor data = zeros(i32, {programs, wide}), flags = zeros(i32, {programs}),
                 got = zeros(i32, {programs, wide}), other = zeros(i32, {programs});
    launch(passOnKernel, {data.ref(), flags.ref(), got.ref(), other.ref(), patience / 100}, "", programs);
    const Raw begun = read(got);
    for (int64_t i = 0; i < programs * wide; ++i)
      ASSERT_EQ(begun[i], static_cast<uint64_t>(i / wide)) << "element " << i % wide << " of program " << i / wide;
  });
}

// --- A chain that waits ----------------------------------------------------------------------------------------------

struct ChainConfig {
  int flags = 1; // of a program
};

/// Programs run in turn, by numbers that they draw. Each waits for all flags of the previous one, adds one to its row,
/// and sets its own flags.
void waitInTurn(View tickets, View data, View flags, View got, ChainConfig cfg) {
  Tile turn = cast(reshape(atomic_add(tickets, {0}, full(i32, {1}, 1)), {}), i64);
  for (Tile n : repeat_while([&] {
         Tile before = atomic_load(flags, {turn - 1, 0}, {1, cfg.flags}); // none before the first
         return (turn > 0) & any(reshape(before, {cfg.flags}) == 0);
       }))
    (void)n;
  Tile row = load(data, {turn - 1, 0}, {1, wide});
  store(data, {turn, 0}, row + 1);
  atomic_store(flags, {turn, 0}, full(i32, {1, cfg.flags}, 1));
  store(got, {turn, 0}, row);
}
const Kernel waitInTurnKernel = kernel("wait_in_turn", waitInTurn, {field("flags", &ChainConfig::flags)});

// One flag for a program, or more than it has threads, so that each thread has several.
TEST_P(Litmus, WhoWaitsForAFlagSeesWhatWasStoredBeforeIt) {
  const int64_t programs = 12;
  for (const int count : {1, 700})
    everyWay([&](int64_t) {
      const Tensor tickets = zeros(i32, {1}), data = zeros(i32, {programs, wide}),
                   flags = zeros(i32, {programs, count}), got = zeros(i32, {programs, wide});
      launch(waitInTurnKernel, {tickets.ref(), data.ref(), flags.ref(), got.ref()}, "flags=" + std::to_string(count),
             programs);
      const Raw rows = read(got);
      for (int64_t i = 0; i < programs * wide; ++i)
        ASSERT_EQ(rows[i], static_cast<uint64_t>(i / wide)) << count << " flags, element " << i;
    });
}

/// The others see program 0's flag by a relaxed load, and acquire by an update with an unused result. The update is
/// ordered after program 0's release, whatever value it reads.
void changeAndForget(View x, View told, View y, ChainConfig cfg) {
  Tile p = program_id(0);
  if_(
      p == 0,
      [&] {
        store(x, {0}, full(i32, {wide}, 7));
        atomic_max(told, {0}, full(i32, {cfg.flags}, 1), Order::release);
      },
      [&] {
        for (Tile n : repeat_while([&] { return any(atomic_load(told, {0}, {cfg.flags}, Order::relaxed) == 0); }))
          (void)n;
        atomic_add(told, {0}, full(i32, {cfg.flags}, 1), Order::acquire);
        store(y, {p, 0}, load(x, {0}, {wide}));
      });
}
const Kernel changeAndForgetKernel =
    kernel("change_and_forget", changeAndForget, {field("flags", &ChainConfig::flags)});

TEST_P(Litmus, AChangeAcquiresThoughNobodyUsesItsResult) {
  const int64_t programs = 3;
  for (const int count : {1, 700})
    everyWay([&](int64_t) {
      const Tensor x = zeros(i32, {wide}), told = zeros(i32, {count}), y = counting(i32, {programs, wide});
      launch(changeAndForgetKernel, {x.ref(), told.ref(), y.ref()}, "flags=" + std::to_string(count), programs);
      const Raw got = read(y);
      for (int64_t i = wide; i < programs * wide; ++i)
        ASSERT_EQ(got[i], 7U) << count << " flags, element " << i;
    });
}

// --- Store buffering -------------------------------------------------------------------------------------------------

/// Each program sets its own mark, counts itself, and reads the other's: the second to count sees the other's mark.
void markAndLook(View marks, View count, View saw) {
  Tile p = program_id(0), one = full(i32, {1}, 1), none = full(i32, {1}, 0);
  atomic_add(marks, {p}, one);
  atomic_add(count, {0}, one, Order::acq_rel);
  store(saw, {p}, atomic_add(marks, {1 - p}, none));
}
const Kernel markAndLookKernel = kernel("mark_and_look", markAndLook);

// The marks are written and read by the atomics themselves: an exchange, and an addition of 0.
void exchangeAndLook(View marks, View saw) {
  Tile p = program_id(0);
  atomic_exchange(marks, {p}, full(i32, {1}, 1), Order::acq_rel);
  store(saw, {p}, atomic_add(marks, {1 - p}, full(i32, {1}, 0), Order::acq_rel));
}
const Kernel exchangeAndLookKernel = kernel("exchange_and_look", exchangeAndLook);

TEST_P(Litmus, OneOfTwoSeesTheOthersExchange) {
  for (int round = 0; round < 20; ++round)
    everyWay([&](int64_t) {
      const Tensor marks = zeros(i32, {2}), saw = zeros(i32, {2});
      launch(exchangeAndLookKernel, {marks.ref(), saw.ref()}, "", 2);
      const Raw got = read(saw);
      EXPECT_TRUE(got[0] || got[1]) << "neither saw the other";
    });
}

TEST_P(Litmus, OneOfTwoSeesTheOther) {
  for (int round = 0; round < 20; ++round)
    everyWay([&](int64_t) {
      const Tensor marks = zeros(i32, {2}), count = zeros(i32, {1}), saw = zeros(i32, {2});
      launch(markAndLookKernel, {marks.ref(), count.ref(), saw.ref()}, "", 2);
      const Raw got = read(saw);
      EXPECT_TRUE(got[0] || got[1]) << "neither saw the other";
    });
}

// --- An index tile is read where it stands ---------------------------------------------------------------------------

/// The rows of a scatter are those that a store before it has left, shifted by one.
void scatterStored(View index, View y) {
  store(index, {0}, wide - 1 - iota(wide));
  Tile rows = load(index, {1}, {wide});
  store(y, {rows}, iota(wide) + 1);
}
const Kernel scatterStoredKernel = kernel("scatter_stored", scatterStored);

// Also within one program: a scatter reads its indices after the store before it.
TEST_P(Litmus, AScatterReadsItsRowsBehindTheStoreBeforeIt) {
  const Tensor index = tensor(i32, {wide + 1}, Raw(wide + 1, rawOfInteger(i32, -1))), y = zeros(i32, {wide});
  launch(scatterStoredKernel, {index.ref(), y.ref()});
  const Raw got = read(y); // row wide − 2 − i gets i + 1; the last position reads the −1 behind the others
  for (int64_t i = 0; i < wide - 1; ++i)
    EXPECT_EQ(got[wide - 2 - i], static_cast<uint64_t>(i + 1)) << "element " << i;
}

KILN_ON_DEVICES(Litmus);

} // namespace
