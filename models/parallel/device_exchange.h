// Collective operations on device memory: through the host, or between GPUs by NCCL.

#pragma once

#include "models/parallel/collective.h"
#include "runtime/Device.h"

#include <chrono>

namespace kiln {

/// The operations of Collective for memory of a device. Each runs after earlier launches, and later launches see its
/// result. Throws Error as Collective does, and as described at finish().
class DeviceExchange {
public:
  /// For dense memory of `device`: NCCL between GPUs if possible, otherwise through host memory. All ranks
  /// call it. Both arguments must outlive it.
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

//===-- NCCL ----------------------------------------------------------------------------------------------------===//
// Exchanges between GPUs by NCCL, concurrent with kernels.

/// How long a rank waits for the others, in wall-clock time. Others may need that long to compile their first step, or
/// to write a checkpoint.
inline constexpr std::chrono::milliseconds longestWait = std::chrono::minutes(10);

/// Exchanges by NCCL, if every rank has a GPU of its own and the library. Otherwise null, and the first rank prints the
/// reason on standard error. Pieces are sent unchanged, without any reduction on the way, so sums are bit-equal to
/// those of any other exchange. All ranks call it and its functions. Both arguments must outlive it.
///
/// If an exchange fails, or a rank takes no part in it for `limit`, finish() throws Error (device) and ends this rank's
/// use of NCCL. Throws Error (device) if NCCL does not start, is too old, or has another number of ranks.
std::unique_ptr<DeviceExchange> ncclExchange(Device &device, Collective &ranks,
                                             std::chrono::milliseconds limit = longestWait);

} // namespace kiln
