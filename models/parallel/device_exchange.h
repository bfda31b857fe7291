// Exchanges between ranks of what lies on their devices.

#pragma once

#include "models/parallel/collective.h"
#include "runtime/Device.h"

namespace kiln {

/// What Collective does for memory of a device. Each waits for the launches before it, and those after it see what it
/// brought. Throws Error as Collective does.
class DeviceExchange {
public:
  /// For dense memory of `device`. Both must outlive it.
  static std::unique_ptr<DeviceExchange> of(Device &device, Collective &ranks);
  virtual ~DeviceExchange() = default;

  /// Piece r of `from` (ranks · n) goes to rank r; piece r of `to` (ranks · n) is what rank r sent here.
  virtual void exchange(const TensorRef &from, const TensorRef &to) = 0;
  /// Piece r of `all` (ranks · n) is rank r's, and comes from there.
  virtual void gather(const TensorRef &all) = 0;
};

} // namespace kiln
