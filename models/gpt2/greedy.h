// What a model in training makes of the beginnings of texts that it does not train on, as it is: always the likeliest
// token next.

#pragma once

#include "models/gpt2/network.h"
#include "models/tokens/tokenizer.h"
#include "models/train/train_data.h"
#include "models/train/trainer.h"

namespace kiln {

/// `count` texts, from places spread evenly over what `data` holds out and the same each time: a few tokens that are
/// there, `→`, and those that the trainer's network goes on with, up to the end of a document.
std::vector<std::string> greedyTexts(Trainer &trainer, const Network &network, const TrainData &data,
                                     const Tokenizer &tokenizer, int64_t count);

} // namespace kiln
