// Loops that run while a condition is true.

#include "runtime/simulator/SimulatorDevice.h"
#include "test/runtime/semantics/semantics.h"

#include <algorithm>

using namespace kiln;
using namespace kiln::test;

namespace {

class While : public Semantics {};

// --- Scalars ---------------------------------------------------------------------------------------------------------

void collatz(View x, View out) {
  Tile at = program_id(0), n = load(x, {at}), steps = 0;
  for (Tile round : repeat_while([&] { return n != 1; })) {
    n = where(n % 2 == 0, n / 2, 3 * n + 1);
    steps = round + 1;
  }
  store(out, {at}, steps);
}
const Kernel collatzKernel = kernel("collatz", collatz);

// The condition is evaluated before each iteration, including the first; iterations are numbered from 0.
TEST_P(While, CollatzTakesAsManyRoundsAsItNeeds) {
  const Tensor x = counting(i64, {30}, 1), out(device, i64, {30});
  launch(collatzKernel, {x.ref(), out.ref()}, "", 30);
  const Raw got = read(out);
  for (int64_t i = 0; i < 30; ++i) {
    int64_t steps = 0;
    for (int64_t n = i + 1; n != 1; n = n % 2 == 0 ? n / 2 : 3 * n + 1)
      ++steps;
    ASSERT_EQ(static_cast<int64_t>(got[i]), steps) << i + 1;
  }
}

void nestedWhiles(View out, Tile n) {
  Tile i = 0, total = 0;
  for (Tile outer : repeat_while([&] { return i < n; })) {
    Tile j = i;
    for (Tile inner : repeat_while([&] { return j > 0; })) {
      total = total + j + outer - inner;
      j = j - 1;
    }
    i = i + 1;
  }
  store(out, {0}, total);
  store(out, {1}, i);
}
const Kernel nestedWhilesKernel = kernel("nested_whiles", nestedWhiles);

TEST_P(While, Nests) {
  for (const int64_t n : {0, 1, 2, 5}) {
    const Tensor out(device, i64, {2});
    launch(nestedWhilesKernel, {out.ref(), n});
    int64_t total = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i, inner = 0; j > 0; --j, ++inner)
        total += j + i - inner;
    EXPECT_EQ(read(out), Raw({static_cast<uint64_t>(total), static_cast<uint64_t>(n)})) << n;
  }
}

// --- Tiles -----------------------------------------------------------------------------------------------------------

struct TypeConfig {
  int type = 0;
  int extent = 1;
};
std::vector<Field> typeFields() { return {field("type", &TypeConfig::type), field("extent", &TypeConfig::extent)}; }

// Three tiles are rotated until the sum of one, computed in the condition, is small enough.
void halve(View out, View rounds, Tile least, TypeConfig cfg) {
  const auto type = static_cast<Type>(cfg.type);
  Tile a = full(type, {cfg.extent}, 64), b = full(type, {3, cfg.extent}, 1), c = full(type, {3, cfg.extent}, 2);
  Tile last = 0;
  for (Tile n : repeat_while([&] { return reduce_max(cast(a, f32)) > cast(least, f32); })) {
    a = cast(cast(a, f32) * 0.5, type);
    Tile before = b;
    b = c;
    c = before;
    last = n;
  }
  store(out, {0, 0}, cast(a, f32));
  store(out, {1, 0}, cast(b, f32));
  store(out, {4, 0}, cast(c, f32));
  store(rounds, {0}, last);
}
const Kernel halveKernel = kernel("halve", halve, typeFields());

// Tiles of several ranks and types are loop-carried and swapped, and have their last value after the loop; without an
// iteration, their first.
TEST_P(While, CarriesTiles) {
  for (const Type type : {f32, bf16, f16, f64, i8, i32, i64})
    for (const int64_t extent : extents)
      for (const int64_t least : {100, 64, 10, 1}) {
        const Tensor out(device, f32, {7, extent}), rounds(device, i64, {1});
        launch(halveKernel, {out.ref(), rounds.ref(), least},
               TypeConfig{static_cast<int>(type), static_cast<int>(extent)});
        double a = 64;
        int64_t count = 0;
        for (; a > static_cast<double>(least); a *= 0.5)
          ++count;
        const Raw got = read(out);
        for (int64_t i = 0; i < 7 * extent; ++i) {
          const int64_t row = i / extent;
          const bool isSecond = (row >= 4) != (count % 2 == 1);
          ASSERT_EQ(toDouble(f32, got[i]), row == 0   ? a
                                           : isSecond ? 2
                                                      : 1)
              << nameOf(type) << " at " << i << " of rows of " << extent << ", " << count << " rounds";
        }
        ASSERT_EQ(read(rounds)[0], static_cast<uint64_t>(std::max<int64_t>(count - 1, 0)));
      }
}

// --- What rounds do --------------------------------------------------------------------------------------------------

struct PowerConfig {
  int extent = 32;
  int type = 0;
};
std::vector<Field> powerFields() { return {field("extent", &PowerConfig::extent), field("type", &PowerConfig::type)}; }

// Products in the iterations, and a nested loop of products whose operands a GPU prefetches.
void power(View x, View out, Tile times, PowerConfig cfg) {
  const int64_t n = cfg.extent;
  Tile result = zeros(f32, {n, n}), done = 0;
  for (Tile round : repeat_while([&] { return done < times; })) {
    Tile sum = zeros(f32, {n, n});
    for (Tile k : range(0, x.dim(1), 16))
      sum = dot(load(x, {0, k}, {n, 16}), load(x, {k, 0}, {16, n}), sum);
    result = dot(load(x, {0, 0}, {n, n}), load(x, {0, 0}, {n, n}), result) + sum;
    done = done + 1;
  }
  store(out, {0, 0}, result);
}
const Kernel powerKernel = kernel("power", power, powerFields());

TEST_P(While, RoundsMultiply) {
  for (const Type type : {f32, bf16})
    for (const int64_t extent : {16, 32})
      for (const int64_t times : {0, 1, 3}) {
        Raw numbers;
        for (int64_t i = 0; i < extent * extent; ++i)
          numbers.push_back(rawOfReal(type, static_cast<double>((i * 7 + i / extent) % 5 - 2)));
        const Tensor x = tensor(type, {extent, extent}, numbers), out(device, f32, {extent, extent});
        launch(powerKernel, {x.ref(), out.ref(), times}, extentText(extent));
        const Raw got = read(out);
        for (int64_t i = 0; i < extent; ++i)
          for (int64_t j = 0; j < extent; ++j) {
            double product = 0;
            for (int64_t k = 0; k < extent; ++k)
              product += toDouble(type, numbers[i * extent + k]) * toDouble(type, numbers[k * extent + j]);
            ASSERT_EQ(toDouble(f32, got[i * extent + j]), static_cast<double>(2 * times) * product)
                << extent << " at " << i << ", " << j << ", " << times << " rounds";
          }
      }
}

// A while inside a loop whose operands a GPU prefetches.
void whileInProducts(View x, View out, Tile times) {
  Tile sum = zeros(f32, {32, 32});
  for (Tile k : range(0, x.dim(1), 16)) {
    Tile a = load(x, {0, k}, {32, 16}), b = load(x, {k, 0}, {16, 32}), left = times;
    for (Tile round : repeat_while([&] { return left > 0; })) {
      sum = dot(a, b, sum);
      left = left - 1;
    }
    sum = dot(a, b, sum);
  }
  store(out, {0, 0}, sum);
}
const Kernel whileInProductsKernel = kernel("while_in_products", whileInProducts);

TEST_P(While, StandsInALoopOfProducts) {
  for (const int64_t times : {0, 1, 2}) {
    Raw numbers;
    for (int64_t i = 0; i < 32 * 32; ++i)
      numbers.push_back(rawOfReal(bf16, static_cast<double>(i * 5 % 7 - 3)));
    const Tensor x = tensor(bf16, {32, 32}, numbers), out(device, f32, {32, 32});
    launch(whileInProductsKernel, {x.ref(), out.ref(), times});
    const Raw got = read(out);
    for (int64_t i = 0; i < 32 * 32; ++i) {
      double product = 0;
      for (int64_t k = 0; k < 32; ++k)
        product += toDouble(bf16, numbers[i / 32 * 32 + k]) * toDouble(bf16, numbers[k * 32 + i % 32]);
      ASSERT_EQ(toDouble(f32, got[i]), static_cast<double>(times + 1) * product) << "at " << i;
    }
  }
}

// Follows a list in memory: an iteration reads a row at the index read before, writes there, and counts itself.
void follow(View next, View seen, View count, Tile first) {
  Tile at = first, total = zeros(i64, {1});
  for (Tile n : repeat_while([&] { return at >= 0; })) {
    store(seen, {at, 0}, full(i64, {4}, n));
    atomic_add(count, {0}, full(i64, {1}, 1));
    Tile row = load(next, {reshape(at, {1}), 0}, {3});
    total = total + sum(row);
    at = load(next, {at, 0});
  }
  store(count, {1}, total);
}
const Kernel followKernel = kernel("follow", follow);

TEST_P(While, RoundsReadAndWriteMemory) {
  constexpr int64_t rows = 20;
  Raw table(rows * 3);
  for (int64_t i = 0; i < rows; ++i) {
    table[i * 3] = static_cast<uint64_t>(i == 13 ? -1 : (i + 7) % rows);
    table[i * 3 + 1] = static_cast<uint64_t>(i);
    table[i * 3 + 2] = 1;
  }
  const Tensor next = tensor(i64, {rows, 3}, table), seen = tensor(i64, {rows, 4}, Raw(rows * 4, 99)),
               count(device, i64, {2});
  launch(followKernel, {next.ref(), seen.ref(), count.ref(), int64_t{0}});
  Raw want(rows * 4, 99);
  uint64_t total = 0, n = 0;
  for (int64_t at = 0; at >= 0; at = static_cast<int64_t>(table[at * 3]), ++n) {
    std::fill_n(want.begin() + at * 4, 4, n);
    total += table[at * 3] + table[at * 3 + 1] + table[at * 3 + 2];
  }
  EXPECT_EQ(read(seen), want);
  EXPECT_EQ(read(count), Raw({n, total}));
}

// The condition reads memory that the iteration before has written.
void countUp(View out, Tile end) {
  store(out, {0}, zeros(i64, {64}));
  for (Tile n : repeat_while([&] { return sum(load(out, {0}, {64})) < end; }))
    store(out, {0}, load(out, {0}, {64}) + 1);
}
const Kernel countUpKernel = kernel("count_up", countUp);

TEST_P(While, ConditionsReadWhatRoundsWrote) {
  for (const int64_t end : {0, 1, 64, 65, 640}) {
    const Tensor out = counting(i64, {64});
    launch(countUpKernel, {out.ref(), end});
    EXPECT_EQ(read(out), Raw(64, static_cast<uint64_t>((end + 63) / 64))) << end;
  }
}

// --- vmap ------------------------------------------------------------------------------------------------------------

TEST_P(While, MayDifferFromExampleToExample) {
  const Kernel batch = vmap(collatzKernel, {1, 0});
  const Tensor x = counting(i64, {5, 6}, 1), out(device, i64, {6, 5});
  kiln::launch(*device, batch, {5, 1, 6}, {x.ref(), out.ref()});
  const Raw got = read(out);
  for (int64_t i = 0; i < 30; ++i) {
    int64_t steps = 0;
    for (int64_t n = i + 1; n != 1; n = n % 2 == 0 ? n / 2 : 3 * n + 1)
      ++steps;
    ASSERT_EQ(static_cast<int64_t>(got[i % 6 * 5 + i / 6]), steps) << i + 1;
  }
}

// --- Locks -----------------------------------------------------------------------------------------------------------

constexpr int lanes = 128;

/// Adds one to all of `total` and the program's number to `order`, under a lock.
void underLock(View lock, View total, View order) {
  Tile taken = 1;
  for (Tile round : repeat_while([&] { return taken != 0; }))
    taken = cast(atomic_compare_exchange(lock, {0}, 0, 1, Order::acquire), i64);
  store(total, {0}, load(total, {0}, {lanes}) + 1);
  Tile before = load(total, {lanes});
  store(order, {before}, program_id(0));
  store(total, {lanes}, before + 1);
  atomic_exchange(lock, {0}, 0, Order::release);
}
const Kernel underLockKernel = kernel("under_lock", underLock);

// Many programs take a lock in turn, on any number of threads and in any schedule: no update is lost.
TEST_P(While, ALockLetsOneProgramInAtATime) {
  constexpr int64_t programs = 200;
  const auto run = [&] {
    const Tensor lock = tensor(i32, {1}, {0}), total = tensor(i64, {lanes + 1}, Raw(lanes + 1, 0)),
                 order = tensor(i64, {programs}, Raw(programs, 999));
    launch(underLockKernel, {lock.ref(), total.ref(), order.ref()}, "", programs);
    EXPECT_EQ(read(total), Raw(lanes + 1, programs));
    Raw seen = read(order), all;
    std::ranges::sort(seen);
    for (uint64_t i = 0; i < programs; ++i)
      all.push_back(i);
    EXPECT_EQ(seen, all);
    EXPECT_EQ(read(lock), Raw(1, 0));
  };
  if (auto simulator = std::dynamic_pointer_cast<SimulatorDevice>(device)) {
    for (const char *schedule : {"order=forward", "order=reverse", "order=random seed=5"}) {
      SCOPED_TRACE(schedule);
      simulator->setSchedule("check=all " + std::string(schedule));
      run();
    }
    return;
  }
  const int threads = device->threads();
  for (const int count : {1, 2, 3, threads}) {
    SCOPED_TRACE(std::to_string(count) + " threads");
    device->setThreads(count);
    run();
  }
  device->setThreads(threads);
}

KILN_ON_PROCESSORS(While);

} // namespace
