// The counter-based generator against its published vectors, and its distributions.

#include "models/data/random.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace kiln;

namespace {

// Philox 4x32-10 on the counter and key of the authors' known-answer file (all ones).
TEST(Random, MatchesThePublishedVector) {
  const Random random(0xffffffffffffffff, static_cast<Stream>(0xffffffff));
  const std::array<uint32_t, 4> want = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  EXPECT_EQ(random.block(0xffffffffffffffff, 0xffffffff), want);
}

// Another stream of the same seed gives other numbers.
TEST(Random, StreamsDiffer) { EXPECT_NE(Random(1, Stream::weights).block(0), Random(1, Stream::batches).block(0)); }

// below() reaches every value of a small range and none outside.
TEST(Random, BelowCoversItsRange) {
  const Random random(7, Stream::batches);
  std::array<int, 5> seen{};
  for (uint64_t i = 0; i < 200; ++i)
    ++seen.at(random.below(5, i));
  for (int count : seen)
    EXPECT_GT(count, 0);
}

// Mean and deviation of 100 000 normals: the mean's own deviation is σ/√n = 0.0063, that of the deviation σ/√2n =
// 0.0045; five of each are allowed.
TEST(Random, NormalsHaveTheirMoments) {
  const std::vector<float> values = Random(3, Stream::weights).normals(100000, 2.0, 0);
  double sum = 0, squares = 0;
  for (float value : values)
    sum += value, squares += double(value) * value;
  EXPECT_NEAR(sum / values.size(), 0, 0.032);
  EXPECT_NEAR(std::sqrt(squares / values.size()), 2.0, 0.023);
}

} // namespace
