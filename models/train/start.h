// How a run starts, before its first step: what it may be made of is checked, its settings are made to fit, and
// weights, moments and the loss scale come from the checkpoint that it goes on from, or are new.

#pragma once

#include "models/train/loop.h"
#include "models/train/peak.h"
#include "models/train/saves.h"

namespace kiln {

/// The shapes of a run's micro-batches.
std::vector<BatchShape> shapesOf(const Run &run);

/// The settings of the run, once they fit into the memory that it may take, if that is bounded: what was chosen is a
/// note of the run then. Throws Error where nothing fits, and for micro-batches of several shapes. All ranks.
const TrainSettings &fitToMemory(Run &run, const Device &device);

/// Throws Error where the run has taken more steps than its settings give it.
void expectStepsWithin(const Run &run);

/// Has the state name the run's data. Throws Error where the checkpoint was trained on other data.
void expectSameData(Run &run);

/// Throws Error unless all ranks train the same model on the same data from the same place. All ranks.
void expectAgreement(const Run &run);

/// Brings weights, moments, loss scale and the window of outliers to the trainer: of the run's checkpoint, or what the
/// run begins with. Checkpoints that the run does not go on from are removed. All ranks.
void restore(Run &run, Trainer &trainer, Saves &saves);

/// What there is to say before the first step, a line each: model, machine, types, checkpoint, and the run's notes.
std::vector<std::string> introduction(const Run &run, const Device &device, const Trainer &trainer, const Peak &peak);

} // namespace kiln
