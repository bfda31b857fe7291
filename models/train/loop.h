// `gpt2 train`: the run from its first step, or from a checkpoint, to its last.

#pragma once

#include "models/gpt2/options.h"
#include "models/train/progress.h"
#include "models/train/trainer.h"

namespace kiln {

/// Opens the device that the options name.
std::shared_ptr<Device> openDevice(const MachineOptions &options);

/// Trains as the options say, alone in its folder. Once it takes steps, SIGINT, SIGTERM, SIGHUP and SIGPIPE end it
/// after the micro-batch that it is at, with a checkpoint of the last whole step. So does a log that cannot be written,
/// or the folder when it was removed, but with an error. Throws Error.
void train(const TrainOptions &options);

} // namespace kiln
