// The rate of fused multiply-adds that a device reaches, measured by a kernel that does nothing else: the yardstick of
// the trainer's progress bar.

#pragma once

#include "runtime/Device.h"

namespace kiln {

/// Floating-point operations a second (two a multiply-add) in f32, over all of the device's threads; takes about 50 ms.
double measurePeak(Device &device);

} // namespace kiln
