// Collective operations on device memory.

#pragma once

#include "models/parallel/collective.h"
#include "runtime/Device.h"

namespace kiln {

/// The operations of Collective for memory of a device. Each runs after earlier launches, and later launches see its
/// result. Throws Error as Collective does, and as described at finish().
class DeviceExchange {
public:
  /// For dense memory of `device`: NCCL between GPUs if possible (models/parallel/nccl_exchange.h), otherwise through
  /// host memory. All ranks call it. Both arguments must outlive it.
  static std::unique_ptr<DeviceExchange> of(Device &device, Collective &ranks);
  virtual ~DeviceExchange() = default;

  /// All-to-all: piece r of `from` (ranks · n) goes to rank r; piece r of `to` (ranks · n) comes from rank r.
  virtual void exchange(const TensorRef &from, const TensorRef &to) = 0;
  /// As exchange(), but concurrent with launches after it, which must neither write `from` nor use `to` before join().
  /// One at a time.
  virtual void begin(const TensorRef &from, const TensorRef &to) { exchange(from, to); }
  /// Whether launches can run during begin().
  virtual bool overlaps() const { return false; }
  /// Later operations on the device see the result of begin().
  virtual void join() {}
  /// All-gather: piece r of `all` (ranks · n) is rank r's, and is sent to all.
  virtual void gather(const TensorRef &all) = 0;
  /// Waits for the end of all exchanges. To be called before the host waits for the device, because only here a missing
  /// rank is detected.
  virtual void finish() {}
};

/// Exchanges through host memory, which waits for the device each time.
std::unique_ptr<DeviceExchange> stagedExchange(Device &device, Collective &ranks);

} // namespace kiln
