// Random batches, for commands without data.

#pragma once

#include "models/data/host_batch.h"
#include "models/gpt2/config.h"

namespace kiln {

/// `count` sequences of random tokens with targets, of which every seventh is missing.
HostBatch randomTokens(const Gpt2Config &config, int64_t count, uint64_t seed);

} // namespace kiln
