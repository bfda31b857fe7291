// A second stream of a device, for libraries that call the driver themselves, such as NCCL. Its work runs concurrently
// with the device's stream. follow() and lead() order the two.

#pragma once

#include <functional>
#include <memory>

namespace kiln {

class Device;

/// Belongs to one thread at a time; the device must outlive it. All calls throw Error (device) as those of the device
/// do.
class SideStream {
public:
  virtual ~SideStream() = default;

  /// Calls `asks` with the driver's handle of the stream (NVIDIA: a `CUstream`) while the device's context is current.
  /// No other thread uses the device meanwhile.
  virtual void ask(const std::function<void(void *stream)> &asks) = 0;
  /// Later work of this stream waits for all present work of the device's stream.
  virtual void follow() = 0;
  /// Later work of the device's stream waits for all present work of this stream.
  virtual void lead() = 0;
  /// Whether all work of this stream has ended. Does not wait.
  virtual bool isDone() = 0;
};

/// A device with a second stream.
class SideStreamed {
public:
  virtual std::unique_ptr<SideStream> sideStream() = 0;

protected:
  ~SideStreamed() = default;
};

/// A second stream of the device; null if it has none.
std::unique_ptr<SideStream> sideStreamOf(Device &device);

} // namespace kiln
