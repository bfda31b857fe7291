// The multiply-add rate that a device reaches with the unit that GEMMs of a type use, measured by a kernel that does
// nothing else. The progress bar compares with it.

#pragma once

#include "runtime/Device.h"

#include <chrono>
#include <functional>

namespace kiln {

/// The best of several samples of a rate, until the two best agree. If other processes take cores away, most samples
/// are too low and none is too high.
double bestRate(const std::function<double()> &sample);

/// A sampler of a device's rate, and its description.
struct PeakSampler {
  std::function<double()> sample;
  std::string what; // `f32 multiply-adds`, `bf16 products`
};

/// A sampler of floating-point operations a second (two a multiply-add), over all threads, for steps with GEMMs of
/// `type`. For f32 on a CPU it runs chains of multiply-adds. For narrow types, and on a GPU, it runs a dense GEMM,
/// which keeps their special units busy. Creating it takes some 20 ms, a sample 2 ms; the device is idle afterwards and
/// must outlive it.
PeakSampler peakSampler(Device &device, Type type, std::optional<Precision> precision = {});

/// A sampler of bytes a second: reads and writes of adding two arrays that exceed any cache. Its three arrays take 192
/// MB.
PeakSampler memorySampler(Device &device);

/// The highest rate seen so far: from samples at the start and during the run, and from the run itself. So a machine
/// that was busy when the run started does not distort the share for long, and no share exceeds 1.
class Peak {
public:
  using Clock = std::chrono::steady_clock;

  /// Takes samples now: about 50 ms, and up to half a second if other processes use the cores.
  explicit Peak(PeakSampler sampler);

  /// The fraction of the peak that the present `rate` is. Sometimes it takes a sample first; samples cost a run at most
  /// 0.5 % of its time.
  double shareOfPeak(double rate, Clock::time_point now = Clock::now());
  /// Floating-point operations a second.
  double best() const { return highest; }
  const std::string &what() const { return sampler.what; }

private:
  PeakSampler sampler;
  double highest;
  Clock::time_point next;
};

} // namespace kiln
