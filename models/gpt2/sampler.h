// `gpt2 sample`: text from a trained model, a token at a time.

#pragma once

#include "models/data/random.h"
#include "models/gpt2/options.h"

namespace kiln {

/// Index drawn from softmax(logits / temperature) over the `topK` largest (0: all); `uniform` in [0, 1) chooses.
/// Temperature 0 takes the largest.
int64_t choose(const std::vector<float> &logits, double temperature, int64_t topK, double uniform);

/// Prints the prompt and what the model goes on with. Throws Error.
void sample(const SampleOptions &options);

} // namespace kiln
