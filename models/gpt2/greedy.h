// Sample texts of a model in training: greedy continuations of validation text.

#pragma once

#include "models/gpt2/network.h"
#include "models/tokens/tokenizer.h"
#include "models/train/train_data.h"
#include "models/train/trainer.h"

namespace kiln {

/// `count` texts from positions that are evenly spread over the validation set and equal each time: a few of its
/// tokens, `→`, and the greedy continuation, up to the end of a document.
std::vector<std::string> greedyTexts(Trainer &trainer, const Network &network, const TrainData &data,
                                     const Tokenizer &tokenizer, int64_t count);

} // namespace kiln
