// Which token comes next. Choosing is no arithmetic of a training step: it is done on the host.

#pragma once

#include <cstdint>
#include <vector>

namespace kiln {

/// Index drawn from softmax(logits / temperature) over the `topK` largest (0: all); `uniform` in [0, 1) chooses.
/// Temperature 0 takes the largest.
int64_t choose(const std::vector<float> &logits, double temperature, int64_t topK, double uniform);

} // namespace kiln
