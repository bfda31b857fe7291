// Exchanges between GPUs by NCCL, beside the kernels that run meanwhile.

#pragma once

#include "models/parallel/device_exchange.h"

#include <chrono>

namespace kiln {

/// How long a rank waits for the others, by the clock on the wall: as long as others may take to compile their first
/// step, or to write a checkpoint.
inline constexpr std::chrono::milliseconds longestWait = std::chrono::minutes(10);

/// By NCCL, where every rank has a GPU of its own and the library; null where not, which the first rank says in a line
/// on standard error with the reason. Pieces are sent and received as they are, and nothing is added on the way: sums
/// are the same as those of any other exchange, to the bit. All ranks call it, and what it makes. Both must outlive it.
///
/// An exchange that goes wrong, or that a rank does not take part in for `limit`, is an Error (device) of finish(),
/// which ends NCCL's part in it. Throws Error (device) where NCCL refuses to begin, or is too old, or counts the ranks
/// differently.
std::unique_ptr<DeviceExchange> ncclExchange(Device &device, Collective &ranks,
                                             std::chrono::milliseconds limit = longestWait);

} // namespace kiln
