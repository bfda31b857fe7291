// Programs in plain C++ around tiles, as a newcomer writes them; they must mean what C++ says. Mistakes that tracing
// detects are in test/dsl.

#include "test/runtime/semantics/semantics.h"

#include <map>

using namespace kiln;
using namespace kiln::test;

namespace {

class Language : public Semantics {
protected:
  /// The f32 view of `size` elements, initially zeros, after `kernel`; `n` is its scalar argument.
  std::vector<double> run(const Kernel &kernel, int64_t size, std::optional<int64_t> n = {}) {
    const Tensor out = tensor(f32, {size}, Raw(size, 0));
    launch(kernel, n ? std::vector<Arg>{out.ref(), *n} : std::vector<Arg>{out.ref()});
    std::vector<double> numbers;
    for (const uint64_t raw : read(out))
      numbers.push_back(toDouble(f32, raw));
    return numbers;
  }
};
using Numbers = std::vector<double>;

// --- Variables -------------------------------------------------------------------------------------------------------

void cycle(View out, Tile n) {
  std::map<int, Tile> tiles;
  for (int i = 0; i < 3; ++i)
    tiles[i] = full(f32, {5}, i);
  for (Tile k : range(n))
    for (auto &[i, tile] : tiles)
      tile = tile + tiles[(i + 1) % 3];
  for (auto &[i, tile] : tiles)
    store(out, {i * 5}, tile);
}
const Kernel cycleKernel = kernel("cycle", cycle);

// Each of three carried tiles needs the old value of another one.
TEST_P(Language, CarriedTilesReadEachOtherInACycle) {
  for (const int64_t n : {0, 1, 2, 6}) {
    double tiles[] = {0, 1, 2};
    for (int64_t k = 0; k < n; ++k)
      for (int i = 0; i < 3; ++i)
        tiles[i] += tiles[(i + 1) % 3];
    const Numbers got = run(cycleKernel, 15, n);
    for (int i = 0; i < 15; ++i)
      ASSERT_EQ(got[i], tiles[i / 5]) << n << " at " << i;
  }
}

static_assert(std::is_same_v<decltype(max(3, 4)), int64_t> && max(3, int64_t{-4}) == 3 && min(3u, -4) == -4);

void startOver(View out, Tile n) {
  Tile i = cast(n, i32), real = cast(n, f64), small = cast(n, u8), holds = n > 100;
  for (Tile k : range(n)) {
    if_(k % 3 == 2, [&] {
      i = 0;
      real = 5;
      small = 200;
      holds = true;
    });
    i = i + 1;
    real = real + 0.5;
    small = small + 1;
  }
  store(out, {0},
        cast(concat({broadcast(cast(i, f64), {1}), broadcast(real, {1}), broadcast(cast(small, f64), {1}),
                     broadcast(cast(holds, f64), {1})}),
             f32));
}
const Kernel startOverKernel = kernel("start_over", startOver);

// A number that is assigned to a scalar takes its type, so that a loop may carry it.
TEST_P(Language, AssignedNumbersKeepTheTypeOfAScalar) {
  EXPECT_EQ(run(startOverKernel, 4, 2), (Numbers{4, 3, 4, 0}));
  EXPECT_EQ(run(startOverKernel, 4, 4), (Numbers{2, 6, 202, 1}));
}

void mixAll(View out, Tile n) {
  std::vector<Tile> tiles;
  for (int i = 0; i < 5; ++i)
    tiles.push_back(full(i64, {3}, i));
  for (Tile k : range(n)) {
    const std::vector<Tile> old = tiles;
    for (int i = 0; i < 5; ++i)
      tiles[i] = old[(i + 1) % 5] * 2 - old[(i + 3) % 5] + old[(i * 2) % 5];
  }
  for (int i = 0; i < 5; ++i)
    store(out, {i * 3}, cast(tiles[i], f32));
}
const Kernel mixAllKernel = kernel("mix_all", mixAll);

TEST_P(Language, ACopiedVectorKeepsTheOldValues) {
  for (const int64_t n : {0, 1, 2, 5}) {
    std::vector<int64_t> tiles{0, 1, 2, 3, 4};
    for (int64_t k = 0; k < n; ++k) {
      const std::vector<int64_t> old = tiles;
      for (int i = 0; i < 5; ++i)
        tiles[i] = old[(i + 1) % 5] * 2 - old[(i + 3) % 5] + old[(i * 2) % 5];
    }
    const Numbers got = run(mixAllKernel, 15, n);
    for (int i = 0; i < 15; ++i)
      ASSERT_EQ(got[i], static_cast<double>(tiles[i / 3])) << n << " at " << i;
  }
}

void grow(Tile &x) { x += 1; }
Tile grown(Tile x) {
  x += 100; // the caller's tile stays
  return x;
}
void variables(View out) {
  Tile x = zeros(f32, {});
  Tile &same = x;
  const auto shared = std::make_shared<Tile>(x);
  auto addTo = [&](double by) { same = same + by; };
  for (Tile k : range(4)) {
    grow(x);
    addTo(10);
    *shared = *shared + grown(x);
    Tile copy = x;
    copy = copy * 0.0;
  }
  store(out, {0}, x);
  store(out, {1}, *shared);
}
const Kernel variablesKernel = kernel("variables", variables);

TEST_P(Language, ReferencesAndPointersAreTheSameTileAndCopiesAreNot) {
  EXPECT_EQ(run(variablesKernel, 2), (Numbers{44, 11 + 22 + 33 + 44 + 400}));
}

void shadowed(View out, Tile n) {
  Tile x = full(f32, {}, 1);
  for (Tile k : range(n)) {
    store(out, {0}, x);
    Tile x = full(f32, {}, 5); // another variable
    x *= 2;
    store(out, {1}, x);
  }
  store(out, {2}, x);
}
const Kernel shadowedKernel = kernel("shadowed", shadowed);

TEST_P(Language, AnInnerVariableHidesTheOuterOne) { EXPECT_EQ(run(shadowedKernel, 3, 4), (Numbers{1, 10, 1})); }

void narrowInside(View out) {
  Tile sum = full(f32, {}, 1);
  for (Tile k : range(3)) {
    Tile other = sum; // a variable of the body may change its type
    other = cast(other, i32);
    other = other + k;
    sum = cast(other, f32) * 2;
  }
  store(out, {0}, sum);
}
const Kernel narrowInsideKernel = kernel("narrow_inside", narrowInside);

TEST_P(Language, AVariableOfTheBodyMayChangeItsType) { EXPECT_EQ(run(narrowInsideKernel, 1), (Numbers{16})); }

void compound(View out) {
  Tile x = full(f32, {3}, 7);
  x += 1;
  x -= iota(3);
  x *= 2.5;
  x /= 4;
  store(out, {0}, x);
}
const Kernel compoundKernel = kernel("compound", compound);

TEST_P(Language, CompoundAssignmentsAreTheirOperators) { EXPECT_EQ(run(compoundKernel, 3), (Numbers{5, 4.375, 3.75})); }

void swappedOperands(View out, Tile n) {
  const Tile results[] = {2 == n, 2 != n, 2 < n, 2 <= n, 2 > n, 2 >= n, n == 3, n != 3};
  for (int i = 0; i < 8; ++i)
    store(out, {i}, where(results[i], 1.0, 0.0));
  store(out, {8}, cast(10 - n, f32));
  store(out, {9}, 10 / cast(n, f32));
  store(out, {10}, cast(7 % n, f32));
  store(out, {11}, cast(1 << n, f32));
}
const Kernel swappedOperandsKernel = kernel("swapped_operands", swappedOperands);

// C++20 would rather turn a comparison about than take the one that is meant.
TEST_P(Language, NumbersMayStandOnTheLeft) {
  EXPECT_EQ(run(swappedOperandsKernel, 12, 2), (Numbers{1, 0, 0, 1, 0, 1, 0, 1, 8, 5, 1, 4}));
  EXPECT_EQ(run(swappedOperandsKernel, 12, 3), (Numbers{0, 1, 1, 1, 0, 0, 1, 0, 7, 10.f / 3, 1, 8}));
}

// --- Loops -----------------------------------------------------------------------------------------------------------

void counters(View out, Tile n) {
  Tile last = full(i64, {}, -1);
  for (Tile k : range(n)) {
    last = k;
    k = k * 2; // the body's own copy: the loop goes on as it was
    store(out, {k}, 1);
    n = n + 5; // the bound was taken when the loop began
  }
  store(out, {9}, cast(last, f32));
  store(out, {10}, cast(n, f32));
}
const Kernel countersKernel = kernel("counters", counters);

TEST_P(Language, CounterAndBoundBelongToTheLoop) {
  EXPECT_EQ(run(countersKernel, 11, 3), (Numbers{1, 0, 1, 0, 1, 0, 0, 0, 0, 2, 18}));
  EXPECT_EQ(run(countersKernel, 11, 0), (Numbers{0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0}));
}

void unrolled(View out, Tile n) {
  Tile sum = zeros(f32, {});
  for (Tile k : range(n)) {
    for (int i = 0; i < 4; ++i) {
      if (i == 2)
        continue;
      sum = sum + i;
    }
    if (out.rank() == 1)
      continue;
    sum = sum * 1000.0;
  }
  store(out, {0}, sum);
}
const Kernel unrolledKernel = kernel("unrolled", unrolled);

TEST_P(Language, HostLoopsUnrollAndContinueChooses) { EXPECT_EQ(run(unrolledKernel, 1, 5), (Numbers{20})); }

void throughMemory(View out, Tile n) {
  for (Tile k : range(n))
    store(out, {1}, load(out, {1}, {3}) + cast(k, f32));
}
const Kernel throughMemoryKernel = kernel("through_memory", throughMemory);

// A loop may accumulate in memory, without a loop-carried tile.
TEST_P(Language, ASumMayBeKeptInMemory) { EXPECT_EQ(run(throughMemoryKernel, 5, 10), (Numbers{0, 45, 45, 45, 0})); }

struct Views {
  View from, to;
};
void viewVariables(View a, View b, Tile n) {
  Views views{a, b};
  View &to = views.to;
  for (Tile k : range(n))
    store(to, {k}, load(views.from, {k}, {}) + 1);
  std::swap(views.from, views.to); // outside a body: host variables are free to change
  store(to, {0}, load(views.from, {1}, {}) * 10);
}
const Kernel viewVariablesKernel = kernel("view_variables", viewVariables);

TEST_P(Language, ViewsAreHostVariables) {
  const Tensor a = counting(f32, {3}, 5), b(device, f32, {3});
  launch(viewVariablesKernel, {a.ref(), b.ref(), int64_t(3)});
  Numbers x, y;
  for (const uint64_t raw : read(a))
    x.push_back(toDouble(f32, raw));
  for (const uint64_t raw : read(b))
    y.push_back(toDouble(f32, raw));
  EXPECT_EQ(x, (Numbers{70, 6, 7}));
  EXPECT_EQ(y, (Numbers{6, 7, 8}));
}

// --- Branches --------------------------------------------------------------------------------------------------------

void earlyReturn(View out, Tile n) {
  Tile x = zeros(f32, {4});
  const bool isVector = out.rank() == 1;
  if_(n > 0, [&] {
    x = x + 1;
    if (isVector)
      return; // ends this side only
    x = x + 100;
  });
  store(out, {0}, x + 5);
}
const Kernel earlyReturnKernel = kernel("early_return", earlyReturn);

TEST_P(Language, AReturnEndsOneSideOfABranch) {
  EXPECT_EQ(run(earlyReturnKernel, 4, 1), (Numbers{6, 6, 6, 6}));
  EXPECT_EQ(run(earlyReturnKernel, 4, 0), (Numbers{5, 5, 5, 5}));
}

void byValue(View out, Tile n) {
  Tile x = full(f32, {}, 1), y = x;
  if_(n > 0, [=]() mutable {
    x = x + 1; // the lambda's own copy
    store(out, {0}, x);
  });
  if_(n > 0, [x, &y]() { y = x * 10; });
  store(out, {1}, x);
  store(out, {2}, y);
}
const Kernel byValueKernel = kernel("by_value", byValue);

TEST_P(Language, ATileCapturedByValueIsACopy) {
  EXPECT_EQ(run(byValueKernel, 3, 1), (Numbers{2, 1, 10}));
  EXPECT_EQ(run(byValueKernel, 3, 0), (Numbers{0, 1, 1}));
}

void chain(View out, Tile n) {
  Tile x = full(f32, {}, -1);
  if_(
      n < 0, [&] { x = x * 2; },
      [&] {
        if_(
            n == 0, [&] { x = x * 3; },
            [&] {
              for (Tile k : range(n))
                if_(k % 2 == 0, [&] { x = x - 1; });
            });
      });
  store(out, {0}, x);
}
const Kernel chainKernel = kernel("chain", chain);

TEST_P(Language, BranchesChainAndNestInLoops) {
  EXPECT_EQ(run(chainKernel, 1, -7), (Numbers{-2}));
  EXPECT_EQ(run(chainKernel, 1, 0), (Numbers{-3}));
  EXPECT_EQ(run(chainKernel, 1, 5), (Numbers{-4}));
}

void constantCondition(View out, Tile n) {
  Tile x = cast(n, f32);
  if_(true, [&] { x = x + 1; }, [&] { x = x + 100; });
  if_(false, [&] { x = x * 100; });
  for (Tile k : range(0))
    x = x * 1000;
  for (Tile k : range(5, 3))
    store(out, {1}, 9);
  store(out, {0}, x);
}
const Kernel constantConditionKernel = kernel("constant_condition", constantCondition);

TEST_P(Language, WhatNeverRunsChangesNothing) { EXPECT_EQ(run(constantConditionKernel, 2, 4), (Numbers{5, 0})); }

KILN_ON_PROCESSORS(Language);

} // namespace
