// Exchanges between ranks of what lies on their devices.

#pragma once

#include "models/parallel/collective.h"
#include "runtime/Device.h"

namespace kiln {

/// What Collective does for memory of a device. Each follows the launches before it, and those after it see what it
/// brought. Throws Error as Collective does, and as finish() says.
class DeviceExchange {
public:
  /// For dense memory of `device`: between GPUs by NCCL where it can be (models/parallel/nccl_exchange.h), else through
  /// the host's memory. All ranks. Both must outlive it.
  static std::unique_ptr<DeviceExchange> of(Device &device, Collective &ranks);
  virtual ~DeviceExchange() = default;

  /// Piece r of `from` (ranks · n) goes to rank r; piece r of `to` (ranks · n) is what rank r sent here.
  virtual void exchange(const TensorRef &from, const TensorRef &to) = 0;
  /// The same, but beside launches asked for after it, which neither write `from` nor use `to` before join(). One at a
  /// time.
  virtual void begin(const TensorRef &from, const TensorRef &to) { exchange(from, to); }
  /// Whether begin() lets launches run meanwhile.
  virtual bool overlaps() const { return false; }
  /// What is asked of the device from now on sees what begin() brings.
  virtual void join() {}
  /// Piece r of `all` (ranks · n) is rank r's, and comes from there.
  virtual void gather(const TensorRef &all) = 0;
  /// Waits until all that was exchanged is there. To be called before the host waits for the device: a rank that no
  /// longer takes part shows here alone.
  virtual void finish() {}
};

/// Through the host's memory, which waits for the device each time.
std::unique_ptr<DeviceExchange> stagedExchange(Device &device, Collective &ranks);

} // namespace kiln
