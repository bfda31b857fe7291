// The rate of multiply-adds that a device reaches by the unit that products of a type use, measured by a kernel that
// does nothing else: the yardstick of the trainer's progress bar.

#pragma once

#include "runtime/Device.h"

#include <chrono>
#include <functional>
#include <memory>

namespace kiln {

/// The best of several samples of a rate: as many as it takes until the two best agree. Where other processes take the
/// cores away now and then, most samples are too low, by any factor, and none is too high.
double bestRate(const std::function<double()> &sample);

/// A sampler of a device's rate, and what it does.
struct PeakSampler {
  std::function<double()> sample;
  std::string what; // `f32 multiply-adds`, `bf16 products`
};

/// A sampler of the device's rate for steps whose products are of `type`: floating-point operations a second (two a
/// multiply-add), over all of its threads. For f32 on a CPU these are chains of multiply-adds; narrow types, and all of
/// a GPU's, have units of their own, which a dense product keeps busy. Making it takes some 20 ms, a sample 2 ms, after
/// which the device is idle. The device must outlive it.
PeakSampler peakSampler(Device &device, Type type, std::optional<Precision> precision = {});

/// The same of bytes a second: what adding two arrays, beyond any cache, reads and writes. Its three arrays take 192
/// MB.
PeakSampler memorySampler(Device &device);

/// The highest rate seen so far: at the beginning, by samples spread over the run, and by the run itself. A machine
/// that was busy or slow when the run began does not make the share of its peak misleading for long, and no share is
/// over 1.
class Peak {
public:
  using Clock = std::chrono::steady_clock;

  /// Takes samples now: about 50 ms, and up to half a second where other processes use the cores.
  explicit Peak(PeakSampler sampler);

  /// The share of the peak that `rate`, which was reached just now, is. At times it takes a sample before it answers;
  /// they cost the run at most one part in two hundred.
  double shareOf(double rate, Clock::time_point now = Clock::now());
  /// Floating-point operations a second.
  double best() const { return highest; }
  const std::string &what() const { return sampler.what; }

private:
  PeakSampler sampler;
  double highest;
  Clock::time_point next;
};

} // namespace kiln
