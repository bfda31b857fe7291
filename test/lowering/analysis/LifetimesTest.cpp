// Lifetimes to offsets: what holds of every placement, on random lifetimes, and on those of nested loops and stacks.

#include "lowering/analysis/Lifetimes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace kiln::lowering;

namespace {

/// Between 1 and 40 buffers whose lives begin anywhere and are short or long.
std::vector<Lifetime> randomLifetimes(uint32_t seed) {
  std::mt19937 engine(seed);
  const auto below = [&](int64_t bound) { return static_cast<int64_t>(engine() % static_cast<uint64_t>(bound)); };
  const int64_t longest = 1 + below(30);
  std::vector<Lifetime> lifetimes(1 + below(40));
  for (Lifetime &life : lifetimes) {
    life.bytes = 64 * below(20);
    life.first = below(40);
    life.last = life.first + below(longest);
  }
  return lifetimes;
}

/// As what a backward pass leaves: value i is made at moment i and lives until the passes meet it again.
std::vector<Lifetime> stackedLifetimes(int64_t depth) {
  std::vector<Lifetime> lifetimes;
  for (int64_t i = 0; i < depth; ++i) {
    lifetimes.push_back({64 * (1 + i % 5), i, 2 * depth - i});
    lifetimes.push_back({64 * (1 + i % 3), 2 * depth - i, 2 * depth - i + 1});
  }
  return lifetimes;
}

std::vector<std::vector<Lifetime>> examples() {
  std::vector<std::vector<Lifetime>> all = {{}, stackedLifetimes(1), stackedLifetimes(30)};
  for (uint32_t seed = 0; seed < 2000; ++seed)
    all.push_back(randomLifetimes(seed));
  return all;
}

/// Lowest free offset for each buffer in the order given, looked for byte by byte in steps of 64.
int64_t bytesOfGreedy(const std::vector<Lifetime> &lifetimes, bool largestFirst) {
  std::vector<size_t> order(lifetimes.size()), placed;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return largestFirst ? lifetimes[a].bytes > lifetimes[b].bytes : lifetimes[a].first < lifetimes[b].first;
  });
  std::vector<int64_t> at(lifetimes.size());
  int64_t end = 0;
  for (const size_t i : order) {
    const auto isTaken = [&](size_t j) {
      return lifetimes[i].meets(lifetimes[j]) && at[i] < at[j] + lifetimes[j].bytes &&
             at[j] < at[i] + lifetimes[i].bytes;
    };
    while (std::any_of(placed.begin(), placed.end(), isTaken))
      at[i] += 64;
    placed.push_back(i);
    end = std::max(end, at[i] + lifetimes[i].bytes);
  }
  return end;
}

// No two buffers that share a moment share a byte, and each lies within the whole, at a multiple of 64 as all sizes
// are.
TEST(Lifetimes, WhatIsAliveTogetherIsApart) {
  for (const std::vector<Lifetime> &lifetimes : examples()) {
    const Placement placement = place(lifetimes);
    ASSERT_EQ(placement.offsets.size(), lifetimes.size());
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      const int64_t begin = placement.offsets[i], end = begin + lifetimes[i].bytes;
      EXPECT_GE(begin, 0);
      EXPECT_EQ(begin % 64, 0);
      EXPECT_LE(end, placement.bytes);
      for (size_t j = 0; j < i; ++j)
        if (lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last) {
          EXPECT_TRUE(end <= placement.offsets[j] || placement.offsets[j] + lifetimes[j].bytes <= begin)
              << "buffers " << i << " and " << j;
        }
    }
  }
}

// The whole is as large as the largest sum of sizes at a moment, at least, and never larger than what either of the two
// obvious orders gives: as they come, and larger ones first.
TEST(Lifetimes, NeverLargerThanEitherObviousOrder) {
  for (const std::vector<Lifetime> &lifetimes : examples()) {
    int64_t most = 0;
    for (int64_t moment = 0; moment < 100; ++moment) {
      int64_t alive = 0;
      for (const Lifetime &life : lifetimes)
        alive += life.first <= moment && moment <= life.last ? life.bytes : 0;
      most = std::max(most, alive);
    }
    EXPECT_EQ(maxAlive(lifetimes), most);
    const int64_t bytes = place(lifetimes).bytes;
    EXPECT_GE(bytes, most);
    EXPECT_LE(bytes, bytesOfGreedy(lifetimes, true));
    EXPECT_LE(bytes, bytesOfGreedy(lifetimes, false));
  }
}

// A buffer that is never alive takes bytes of its own at no moment.
TEST(Lifetimes, ADeadBufferSharesWithAll) {
  const Placement placement = place({{64, 0, 5}, {128, 1, 0}, {64, 0, 5}});
  EXPECT_EQ(placement.offsets[1], 0);
  EXPECT_EQ(placement.bytes, 128);
}

} // namespace
