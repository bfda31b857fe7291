// The best of several samples of a rate, some of which were disturbed by other processes.

#include "models/train/peak.h"

#include <gtest/gtest.h>
#include <vector>

using namespace kiln;

namespace {

/// Returns `rates` in turn, the last one repeatedly, and counts calls.
struct Samples {
  std::vector<double> rates;
  size_t taken = 0;
  double operator()() { return rates[std::min(taken++, rates.size() - 1)]; }
};

// The undisturbed samples decide, however many others lose their cores, and however much they lose.
TEST(Peak, DisturbedSamplesDoNotCount) {
  Samples samples{{0.01, 3, 20, 1, 40, 2, 5, 8, 7, 30, 100, 1, 2, 99, 50}};
  EXPECT_EQ(bestRate(std::ref(samples)), 100);
  EXPECT_EQ(samples.taken, 14u); // until the two best agree
}

TEST(Peak, UndisturbedItTakesFewSamples) {
  Samples samples{{100}};
  EXPECT_EQ(bestRate(std::ref(samples)), 100);
  EXPECT_LE(samples.taken, 10u);
}

// Samples that never agree end after a limit.
TEST(Peak, ItEnds) {
  double rate = 1;
  EXPECT_GT(bestRate([&] { return rate *= 1.5; }), 1e3);
}

// If the machine was busy when the run began, its peak is measured later. If it becomes busy, it keeps its peak.
TEST(Peak, SamplesSpreadOverTheRunRaiseIt) {
  double rate = 10;
  Peak peak({[&] { return rate; }, ""});
  EXPECT_EQ(peak.shareOfPeak(5), 0.5);
  rate = 100;
  const auto later = [](int seconds) { return Peak::Clock::now() + std::chrono::seconds(seconds); };
  EXPECT_EQ(peak.shareOfPeak(5, later(100)), 0.05);
  rate = 1;
  EXPECT_EQ(peak.shareOfPeak(5, later(200)), 0.05);
  EXPECT_EQ(peak.best(), 100);
}

// Samples cost next to nothing: a step of a microsecond does not always have one.
TEST(Peak, SamplesAreRare) {
  int taken = 0;
  Peak peak({[&] { return ++taken, 10.0; }, ""});
  const int atFirst = taken;
  const Peak::Clock::time_point begin = Peak::Clock::now();
  for (int i = 0; i < 10000000; i += 1000)
    peak.shareOfPeak(5, begin + std::chrono::microseconds(i));
  EXPECT_LE(taken - atFirst, 10);
  EXPECT_GE(taken - atFirst, 1);
}

// A run that is faster than any sample is the peak.
TEST(Peak, NoShareIsOverOne) {
  Peak peak({[] { return 10.0; }, ""});
  EXPECT_EQ(peak.shareOfPeak(20), 1);
  EXPECT_EQ(peak.shareOfPeak(10), 0.5);
}

// A multiply-add counts as two operations on every thread. A machine that runs this test does more than a million a
// second, and none does 10^17.
TEST(Peak, IsARate) {
  const std::shared_ptr<Device> device = Device::open("cpu");
  for (const Type type : {f32, bf16, f16}) {
    const double peak = Peak(peakSampler(*device, type)).best();
    EXPECT_GT(peak, 1e6);
    EXPECT_LT(peak, 1e17);
  }
}

// Each type has the rate of the unit that multiplies it. If that is not f32's, f32's rate is not used for a step.
TEST(Peak, IsOfTheTypesUnit) {
  const std::shared_ptr<Device> device = Device::open("cpu:generic"), gpu = Device::open("simulator:sm_80");
  EXPECT_EQ(peakSampler(*device, f32).what, "f32 multiply-adds");
  EXPECT_EQ(peakSampler(*device, bf16).what, "bf16 products");
  EXPECT_EQ(peakSampler(*gpu, f32).what, "f32 products");
}

} // namespace
