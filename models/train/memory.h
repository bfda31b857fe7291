// The memory that training a model needs, computed before anything is allocated; and the planner, which chooses
// activations to recompute.

#pragma once

#include "models/parallel/collective.h"
#include "models/train/model.h"
#include "models/train/options.h"
#include "models/train/settings.h"

namespace kiln {

//===-- The plan ------------------------------------------------------------------------------------------------===//

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

//===-- The planner ---------------------------------------------------------------------------------------------===//
// The memory planner: which activations a step recomputes, and in how many loss chunks. Every candidate is planned, so
// its bytes are known exactly before anything is allocated.

/// A candidate, with its memory and its work.
struct MemoryCandidate {
  Recompute recompute;
  int64_t lossChunks = 1;
  int64_t bytes = 0; // of the plan
  /// Work of a micro-batch's gradient: operations of its GEMMs, plus its bytes times a fixed ratio of the two rates.
  /// The ratio is equal for all machines of a kind, so that a choice depends on the plan alone.
  double work = 0;
};

/// The candidates of a model. Groups of saved activations are ordered by their cost for the memory they save. They are
/// recomputed one after the other, each in one more block at a step. Each step is combined with 1, 2, 4 … loss chunks.
class MemoryPlanner {
public:
  /// For training with micro-batches of one shape, on one of several ranks. All arguments must outlive it.
  MemoryPlanner(const Target &target, const Model &model, const BatchShape &shape, const TrainSettings &settings,
                int64_t ranks = 1);

  /// Steps from saving everything, 0, to recomputing everything.
  int64_t steps() const { return blocks * static_cast<int64_t>(order.size()); }
  MemoryCandidate at(int64_t step, int64_t lossChunks) const;
  /// The candidate with the least work among those whose plan needs at most `bytes`; nothing if there is none.
  std::optional<MemoryCandidate> within(int64_t bytes) const;
  /// The candidate of least memory.
  MemoryCandidate least() const;
  /// The settings with a candidate applied.
  TrainSettings with(const MemoryCandidate &candidate) const;
  /// A table of the candidates, in steps of whole groups.
  std::string table() const;

private:
  MemoryCandidate planned(const Recompute &recompute, int64_t lossChunks) const;

  const Target &target;
  const Model &model;
  const BatchShape shape;
  const TrainSettings &settings;
  const int64_t ranks, blocks;
  std::vector<Site> order;
};

/// Bytes of a run in addition to its plan, if device memory is the process's own. They are the present memory, the
/// memory for compiling kernels, and the largest tensor once, as needed to initialise, save or read it.
int64_t bytesOutsidePlan(const Device &device, const Model &model);

/// The settings of a run within a budget, and notes about them.
struct FittedSettings {
  TrainSettings settings;
  std::string note;
};
/// Throws Error if nothing fits the budget, with the smallest one that works. A budget is that of each of `ranks`. If
/// these are `together` here, the ranks of a machine share its free memory, and the first one chooses for all.
FittedSettings fitToMemory(const Device &device, const Model &model, const TrainSettings &settings,
                           const MemoryBudget &budget, int64_t ranks = 1, Collective &together = *aloneCollective());
/// As above, for display: the notes are the table of the candidates and the choice, a line each.
FittedSettings fitToMemoryWithTable(const Device &device, const Model &model, const TrainSettings &settings,
                                    const MemoryBudget &budget, int64_t ranks = 1);

} // namespace kiln
