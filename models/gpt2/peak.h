// The rate of fused multiply-adds that a device reaches, measured by a kernel that does nothing else: the yardstick of
// the trainer's progress bar.

#pragma once

#include "runtime/Device.h"

#include <functional>

namespace kiln {

/// Floating-point operations a second (two a multiply-add) in f32, over all of the device's threads. Takes about 50 ms,
/// and up to half a second where other processes use the cores.
double measurePeak(Device &device);

/// The best of several samples of a rate: as many as it takes until the two best agree. Where other processes take the
/// cores away now and then, most samples are too low, by any factor, and none is too high.
double bestRate(const std::function<double()> &sample);

} // namespace kiln
