// The bytes that training a model takes, known before anything is allocated.

#pragma once

#include "models/train/model.h"
#include "models/train/settings.h"

namespace kiln {

/// The types of a trainer's flat buffers.
struct BufferTypes {
  Type weights;   // that the model computes with
  Type kept;      // of the weights that updates change: masters beside the others where it is another type
  Type gradients; // f32 where those of several micro-batches, parts of a loss or ranks are summed
  bool hasMasters() const { return kept != weights; }
};
BufferTypes bufferTypes(const Model &model, const TrainSettings &settings, int64_t ranks = 1);

/// A launch of a step, for people.
struct LaunchCost {
  std::string label, kernel;
  double flops;  // of its matrix products
  int64_t bytes; // of the memory that it goes through
};

/// Bytes that a model takes on the device: what a trainer allocates, exactly. Nothing is allocated while it runs.
struct MemoryPlan {
  int64_t parameters = 0, masters = 0, gradients = 0, moments = 0; // flat buffers
  int64_t activations = 0;                                         // the arena, the larger of the next two
  ArenaPlan training, evaluation;                                  // of a training micro-batch, of an evaluation
  int64_t workspace = 0;                                           // of the kernels
  int64_t batch = 0;                                               // inputs, losses and what a step reports
  int64_t exchange = 0;                                            // of several ranks, for what others send
  std::vector<LaunchCost> launches;                                // of a micro-batch's gradient
  int64_t total() const {
    return parameters + masters + gradients + moments + activations + workspace + batch + exchange;
  }
};
/// The plan of training with micro-batches of a shape, on one of so many ranks, which share masters and moments. Of the
/// settings it takes what decides about buffers.
MemoryPlan planMemory(const Target &target, const Model &model, const BatchShape &shape,
                      const TrainSettings &settings = {}, int64_t ranks = 1);

/// The same for micro-batches of several shapes on an elastic target (dialect/dsl/Plan.h), whose activations lie in the
/// places of one plan: each has room for the largest that there is of it. What a model takes grows with the targets and
/// the sources of a shape; so does what it brings, and with its sequences.
MemoryPlan planMemory(const Target &target, const Model &model, const std::vector<BatchShape> &shapes,
                      const TrainSettings &settings = {}, int64_t ranks = 1);

} // namespace kiln
