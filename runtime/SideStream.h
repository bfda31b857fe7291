// A second queue of a device's work, for those who ask the device's driver for something themselves: a library that
// moves memory between GPUs while kernels run. What is asked of it runs beside what the device is asked for, but for
// the order that follow() and lead() make.

#pragma once

#include <functional>
#include <memory>

namespace kiln {

class Device;

/// Belongs to one thread at a time; the device must outlive it. Each throws Error (device) as the device's calls do.
class SideStream {
public:
  virtual ~SideStream() = default;

  /// Calls `asks` with the driver's own handle of the stream (NVIDIA: a `CUstream`), the device's context being
  /// current. Nobody else asks the device for anything meanwhile.
  virtual void ask(const std::function<void(void *stream)> &asks) = 0;
  /// What is asked of this stream from now on begins after all that the device was asked for so far.
  virtual void follow() = 0;
  /// What the device is asked for from now on begins after all that this stream was asked for so far.
  virtual void lead() = 0;
  /// Whether all that was asked of this stream has ended. Does not wait.
  virtual bool isDone() = 0;
};

/// A device that has one.
class SideStreamed {
public:
  virtual std::unique_ptr<SideStream> sideStream() = 0;

protected:
  ~SideStreamed() = default;
};

/// The device's; null where it has none.
std::unique_ptr<SideStream> sideStreamOf(Device &device);

} // namespace kiln
