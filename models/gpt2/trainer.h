// `gpt2 train`: the run from its first step, or from a checkpoint, to its last.

#pragma once

#include "models/gpt2/model.h"
#include "models/gpt2/options.h"
#include "models/gpt2/progress.h"

namespace kiln {

/// Opens the device that the options name.
std::shared_ptr<Device> openDevice(const MachineOptions &options);

/// Mean loss over every byte of `text` but the first, in sequences laid end to end.
double validationLoss(Gpt2 &model, const std::vector<uint8_t> &text, int64_t batch);

/// Trains as the options say. SIGINT, SIGTERM, SIGHUP and SIGPIPE end it after the current step, with a checkpoint.
/// Throws Error.
void train(const TrainOptions &options);

} // namespace kiln
