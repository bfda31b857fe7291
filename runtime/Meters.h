// Measurements of a device for profiling: the times of launches and the free memory. Results never depend on them.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kiln {

class Device;

/// Time stamps in a device's stream. Belongs to one thread at a time; the device must outlive it.
class DeviceClock {
public:
  virtual ~DeviceClock() = default;
  /// Records a time stamp after everything enqueued so far and before everything enqueued later.
  virtual void mark() = 0;
  /// Waits for the time stamps since the last call and returns them in order, in seconds of std::chrono::steady_clock.
  /// The first one is exact up to the time of a call to the device. The others have the device's distance from the
  /// first.
  virtual std::vector<double> take() = 0;
  /// The unit of the clock: `time`, `the driver's events`, `cycles at 10 MHz …`.
  virtual const char *what() const = 0;
  /// Whether its seconds are wall clock time.
  virtual bool isTime() const { return true; }
};

/// A device with its own clock and memory.
class Metered {
public:
  virtual std::unique_ptr<DeviceClock> clock() = 0;
  /// Bytes that can be allocated; nothing if the device does not know.
  virtual std::optional<int64_t> freeBytes() const = 0;

protected:
  ~Metered() = default;
};

/// The device's own clock. A device whose launches end before they return has the host's clock.
std::unique_ptr<DeviceClock> clockOf(Device &device);
/// Bytes of the device's own memory that can be allocated; nothing for a device that uses host memory.
std::optional<int64_t> freeBytesOf(const Device &device);

/// Now, in seconds of std::chrono::steady_clock.
double secondsNow();

} // namespace kiln
