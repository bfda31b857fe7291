// Interleaved measurements and medians.

#include "tools/kiln-bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>

using namespace kiln::bench;

/// The pause after a contender whose threads spin for more work: libgomp's, used by oneDNN, spin for about ten
/// milliseconds, which must not disturb the next one.
static constexpr std::chrono::milliseconds rest(20);

static double secondsOf(const Contender &contender, int64_t calls, const std::function<void()> &finish) {
  using Clock = std::chrono::steady_clock;
  std::this_thread::sleep_for(rest);
  auto begin = Clock::now();
  for (int64_t i = 0; i < calls; ++i)
    contender();
  finish();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<double> kiln::bench::measure(const std::vector<Contender> &contenders, int rounds, double sampleSeconds,
                                         const std::function<void()> &finish) {
  std::vector<int64_t> calls;
  for (const Contender &contender : contenders) {
    contender();
    finish();
    double once = secondsOf(contender, 1, finish);
    calls.push_back(std::max<int64_t>(1, std::llround(sampleSeconds / std::max(once, 1e-9))));
  }
  std::vector<std::vector<double>> samples(contenders.size());
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < contenders.size(); ++i)
      samples[i].push_back(secondsOf(contenders[i], calls[i], finish) / static_cast<double>(calls[i]));
  std::vector<double> medians;
  for (const std::vector<double> &sample : samples)
    medians.push_back(median(sample));
  return medians;
}

double kiln::bench::median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double kiln::bench::geometricMean(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += std::log(value);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}
