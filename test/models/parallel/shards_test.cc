// Who has which elements of a flat buffer.

#include "kernels/adamw.h"
#include "models/parallel/shards.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

using namespace kiln;

namespace {

// Every element, including padding, is in one piece. A rank's pieces are contiguous. All ranks have equally many, less
// than a unit more than their share.
TEST(Shards, EachElementHasOneRank) {
  for (const int64_t count : {int64_t{1}, int64_t{2048}, int64_t{5000}, int64_t{4194305}, int64_t{13000000}})
    for (const int64_t ranks : {2, 3, 8}) {
      const Shards shards = Shards::of(count, ranks);
      EXPECT_GE(shards.padded, count);
      EXPECT_LT(shards.own(), count / ranks + 1 + adamwUnit);
      std::vector<int8_t> owners(shards.padded, 0);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        int64_t local = 0;
        for (int64_t b = 0; b < shards.buckets(); ++b) {
          const Piece piece = shards.piece(b, rank);
          EXPECT_EQ(piece.local, local);
          EXPECT_EQ(piece.begin % adamwUnit, 0);
          EXPECT_LE(piece.count, shards.largest());
          for (int64_t i = 0; i < piece.count; ++i)
            ++owners.at(piece.begin + i);
          local += piece.count;
        }
        EXPECT_EQ(local, shards.own());
      }
      EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), shards.padded);
    }
}

// One rank has all as it is.
TEST(Shards, OneRankHasAll) {
  const Shards shards = Shards::of(12345, 1);
  EXPECT_EQ(shards.padded, 12345);
  EXPECT_EQ(shards.buckets(), 1);
  EXPECT_EQ(shards.piece(0, 0).count, 12345);
}

// The parts of any range that the ranks have are that range.
TEST(Shards, PartsAreTheRange) {
  const int64_t ranks = 3;
  const Shards shards = Shards::of(9000000, ranks);
  for (const auto &[begin, count] : {std::pair<int64_t, int64_t>{0, 9000000}, {4000000, 300000}, {5, 1}, {7, 0}}) {
    std::vector<int8_t> seen(shards.padded, 0);
    for (int64_t rank = 0; rank < ranks; ++rank)
      shards.parts(rank, begin, count, [&](int64_t at, int64_t local, int64_t number) {
        EXPECT_LE(local + number, shards.own());
        for (int64_t i = 0; i < number; ++i)
          ++seen.at(at + i);
      });
    for (int64_t i = 0; i < shards.padded; ++i)
      ASSERT_EQ(seen[i], i >= begin && i < begin + count) << i;
  }
}

// A rank sends its pieces of gradients and weights to all other ranks, and a slower network takes longer. A single rank
// sends nothing.
TEST(ExchangePlan, CountsWhatARankSends) {
  const Shards shards = Shards::of(int64_t{124} << 20, 8);
  const ExchangePlan plan = exchangePlan(shards, 2);
  EXPECT_EQ(plan.gradients, shards.padded / 8 * 7 * 4);
  EXPECT_EQ(plan.weights, shards.padded / 8 * 7 * 2);
  EXPECT_GE(plan.rounds, 2 * shards.buckets());
  EXPECT_DOUBLE_EQ(plan.seconds(1e9, 0), static_cast<double>(plan.bytes()) / 1e9);
  EXPECT_DOUBLE_EQ(plan.seconds(1e9, 1e-3), plan.seconds(1e9, 0) + 1e-3 * static_cast<double>(plan.rounds));
  EXPECT_EQ(exchangePlan(Shards::of(1000, 1), 4).bytes(), 0);
}

} // namespace
