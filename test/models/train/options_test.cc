// The effect of options on settings.

#include "models/train/options.h"
#include "models/train/settings.h"

#include <array>
#include <gtest/gtest.h>

namespace kiln {
namespace {

TrainSettings makeSettings(int64_t batch, int64_t accumulate) {
  TrainSettings s;
  s.batch = batch;
  s.accumulate = accumulate;
  s.steps = 8;
  return s;
}

/// Sequences of a micro-batch, micro-batches of a step, and into how many parts a requested micro-batch is cut.
using Counts = std::array<int64_t, 3>;
Counts countsOf(const TrainSettings &s) { return {s.batch, s.accumulate, s.parts}; }

TrainSettings divided(TrainSettings s, int64_t ranks) {
  divide(s, ranks);
  return s;
}

TEST(Divide, CutsMicroBatchesThatAreTooFew) {
  EXPECT_EQ(countsOf(divided(makeSettings(4, 3), 2)), (Counts{4, 3, 1}));
  EXPECT_EQ(countsOf(divided(makeSettings(4, 1), 2)), (Counts{2, 2, 2}));
  EXPECT_EQ(countsOf(divided(divided(makeSettings(4, 1), 2), 4)), (Counts{1, 4, 4})); // goes on on more ranks
}

// Flags have one meaning when a run is resumed: requested micro-batches keep their parts, and new ones are uncut.
TEST(Divide, FlagsSpeakOfMicroBatchesThatAreWhole) {
  const TrainSettings cut = divided(makeSettings(4, 1), 2);
  const auto with = [&](std::map<std::string, std::string> given) {
    return countsOf(replaced({std::move(given)}, cut));
  };
  EXPECT_EQ(with({}), (Counts{2, 2, 2}));
  EXPECT_EQ(with({{"batch", "4"}}), (Counts{2, 2, 2}));
  EXPECT_EQ(with({{"batch", "4"}, {"accumulate", "1"}}), (Counts{2, 2, 2}));
  EXPECT_EQ(with({{"batch", "8"}}), (Counts{8, 1, 1}));
  EXPECT_EQ(with({{"accumulate", "2"}}), (Counts{4, 2, 1}));
}

} // namespace
} // namespace kiln
