// The start of a run, before its first step. It checks the parts, fits the settings to the memory budget, and takes
// weights, moments and loss scale from a checkpoint or initialises them.

#pragma once

#include "models/train/loop.h"
#include "models/train/peak.h"
#include "models/train/saves.h"

namespace kiln {

/// The shapes of a run's micro-batches.
std::vector<BatchShape> listShapes(const Run &run);

/// The settings of the run, after they were fitted to its memory budget if it has one; the choice becomes a note of the
/// run. Throws Error if nothing fits, and for micro-batches of several shapes. All ranks call it.
const TrainSettings &fitToMemory(Run &run, const Device &device);

/// Throws Error if the run has taken more steps than its settings allow.
void expectStepsWithin(const Run &run);

/// Records the run's data in the state. Throws Error if the checkpoint was trained on other data.
void expectSameData(Run &run);

/// Throws Error unless all ranks train one model on one data set from one position. All ranks call it.
void expectAgreement(const Run &run);

/// Brings weights, moments, loss scale and the outlier window to the trainer, from the checkpoint or as initialised.
/// Removes checkpoints that the run does not continue from. All ranks call it.
void restore(Run &run, Trainer &trainer, Saves &saves);

/// The lines to print before the first step: model, machine, types, checkpoint, and the run's notes.
std::vector<std::string> introduction(const Run &run, const Device &device, const Trainer &trainer, const Peak &peak);

} // namespace kiln
