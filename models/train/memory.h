// The memory that training a model needs, computed before anything is allocated.

#pragma once

#include "models/train/model.h"
#include "models/train/settings.h"

namespace kiln {

/// The types of a trainer's flat buffers.
struct BufferTypes {
  Type weights;   // that the model computes with
  Type kept;      // of the weights that AdamW updates: master weights if it differs from `weights`
  Type gradients; // f32 if gradients of several micro-batches, loss chunks or ranks are summed
  bool hasMasters() const { return kept != weights; }
};
BufferTypes bufferTypes(const Model &model, const TrainSettings &settings, int64_t ranks = 1);

/// A launch of a step, for display.
struct LaunchCost {
  std::string label, kernel;
  double flops;  // of its GEMMs
  int64_t bytes; // moved by it
};

/// Device memory of a model: exactly the bytes that a trainer allocates. Nothing is allocated during training.
struct MemoryPlan {
  int64_t parameters = 0, masters = 0, gradients = 0, moments = 0; // flat buffers
  int64_t activations = 0;                                         // the arena, the larger of the next two
  ArenaPlan training, evaluation;                                  // of a training micro-batch, of an evaluation
  int64_t workspace = 0;                                           // of the kernels
  int64_t batch = 0;                                               // inputs, losses and the record of a step
  int64_t exchange = 0;                                            // receive buffers of several ranks
  std::vector<LaunchCost> launches;                                // of a micro-batch's gradient
  int64_t total() const {
    return parameters + masters + gradients + moments + activations + workspace + batch + exchange;
  }
};
/// The plan of training with micro-batches of one shape, on one of several ranks, which shard master weights and
/// moments. It uses the settings that decide about buffers.
MemoryPlan planMemory(const Target &target, const Model &model, const BatchShape &shape,
                      const TrainSettings &settings = {}, int64_t ranks = 1);

/// As above, for micro-batches of several shapes on an elastic target (dialect/dsl/Plan.h). Their activations share the
/// addresses of one plan, with room for the largest of each. The memory grows with the targets and the sources of a
/// shape; inputs also grow with its sequences.
MemoryPlan planMemory(const Target &target, const Model &model, const std::vector<BatchShape> &shapes,
                      const TrainSettings &settings = {}, int64_t ranks = 1);

} // namespace kiln
