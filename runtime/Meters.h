// What a device tells of its work and its memory, for those who look at a run: when launches ran, and what is free.
// Nothing that a run computes depends on it.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kiln {

class Device;

/// Marks in the order of what a device is asked for. Belongs to one thread at a time; the device must outlive it.
class DeviceClock {
public:
  virtual ~DeviceClock() = default;
  /// Marks the time when all that was asked for before has ended, and what is asked for next begins.
  virtual void mark() = 0;
  /// Waits for the marks since the last call, and gives their times in their order, in seconds of
  /// std::chrono::steady_clock. The first of them is right to the time that the host takes to ask the device; those
  /// behind it are as far from it as the device says.
  virtual std::vector<double> take() = 0;
  /// What it counts: `time`, `the driver's events`, `cycles at 10 MHz …`.
  virtual const char *what() const = 0;
  /// Whether its seconds are those of a clock on the wall.
  virtual bool isTime() const { return true; }
};

/// A device with meters of its own.
class Metered {
public:
  virtual std::unique_ptr<DeviceClock> clock() = 0;
  /// Bytes that could be allocated; none: it does not know.
  virtual std::optional<int64_t> freeBytes() const = 0;

protected:
  ~Metered() = default;
};

/// The device's own clock; the host's of a device whose launches have ended when they return.
std::unique_ptr<DeviceClock> clockOf(Device &device);
/// Bytes of the device's own memory that could be allocated; none for one whose memory is the host's.
std::optional<int64_t> freeBytesOf(const Device &device);

/// Now, in seconds of std::chrono::steady_clock.
double secondsNow();

} // namespace kiln
