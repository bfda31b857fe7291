// Choosing the next token.

#include "models/generate/choose.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace kiln;

namespace {

TEST(Choose, TemperatureZeroTakesTheLargest) { EXPECT_EQ(choose({1, 3, 2}, 0, 0, 0.99), 1); }

// With k = 2 the third token is never taken; without it, the highest number takes it.
TEST(Choose, TopKCutsTheTail) {
  EXPECT_EQ(choose({1, 3, 2}, 1, 2, 0.999999), 2);
  EXPECT_EQ(choose({1, 3, 2}, 1, 0, 0.999999), 0);
}

// Two tokens with weights 3 : 1 share the numbers from 0 to 1 in that ratio.
TEST(Choose, ChoosesInProportion) {
  const std::vector<float> logits = {0, std::log(3.0f)};
  EXPECT_EQ(choose(logits, 1, 0, 0.74), 1);
  EXPECT_EQ(choose(logits, 1, 0, 0.76), 0);
}

} // namespace
