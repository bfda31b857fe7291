// Exchanges between GPUs by NCCL, concurrent with kernels.

#pragma once

#include "models/parallel/device_exchange.h"

#include <chrono>

namespace kiln {

/// How long a rank waits for the others, in wall-clock time. Others may need that long to compile their first step, or
/// to write a checkpoint.
inline constexpr std::chrono::milliseconds longestWait = std::chrono::minutes(10);

/// Exchanges by NCCL, if every rank has a GPU of its own and the library. Otherwise null, and the first rank prints the
/// reason on standard error. Pieces are sent unchanged, without any reduction on the way, so sums are bit-equal to
/// those of any other exchange. All ranks call it and its functions. Both arguments must outlive it.
///
/// A failed exchange, or one in which a rank takes no part for `limit`, is an Error (device) of finish(), which ends
/// this rank's use of NCCL. Throws Error (device) if NCCL does not start, is too old, or has another number of ranks.
std::unique_ptr<DeviceExchange> ncclExchange(Device &device, Collective &ranks,
                                             std::chrono::milliseconds limit = longestWait);

} // namespace kiln
