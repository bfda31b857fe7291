// Ways to take less memory for more work: which activations a step makes again, and in how many parts it has its
// logits. Every way is planned, so that its bytes are known exactly before anything is allocated.

#pragma once

#include "models/parallel/collective.h"
#include "models/train/memory.h"
#include "models/train/memory_budget.h"

namespace kiln {

/// One way, and what comes of it.
struct Thrift {
  Recompute recompute;
  int64_t lossChunks = 1;
  int64_t bytes = 0; // of the plan
  /// Of a micro-batch's gradient: operations of its products, and what moving its bytes takes as long as, by a ratio of
  /// the two rates that is the same for all machines of a kind, so that a choice depends on the plan alone.
  double work = 0;
};

/// The ways of a model: sites of the backward pass by what they cost for what they save, one after the other, each in
/// one block more a step; and with each of these 1, 2, 4 … parts of the logits.
class Thrifts {
public:
  /// Of training with micro-batches of a shape, on one of so many ranks. All that it is given must outlive it.
  Thrifts(const Target &target, const Model &model, const BatchShape &shape, const TrainSettings &settings,
          int64_t ranks = 1);

  /// Steps from keeping everything, 0, to making everything again.
  int64_t steps() const { return blocks * static_cast<int64_t>(order.size()); }
  Thrift at(int64_t step, int64_t lossChunks) const;
  /// The way of least work whose plan takes `bytes` at most, if there is one.
  std::optional<Thrift> within(int64_t bytes) const;
  /// The one that takes the least.
  Thrift least() const;
  /// The settings with a way in them.
  TrainSettings with(const Thrift &thrift) const;
  /// A table of the ways, in steps of whole sites.
  std::string table() const;

private:
  Thrift planned(const Recompute &recompute, int64_t lossChunks) const;

  const Target &target;
  const Model &model;
  const BatchShape shape;
  const TrainSettings &settings;
  const int64_t ranks, blocks;
  std::vector<Site> order;
};

/// Bytes that a run takes beside its plan where the device's memory is the process's own: what it has now, what
/// compiling the kernels takes, and the largest tensor once, which is in memory when it is made, saved or read.
int64_t bytesBeside(const Device &device, const Model &model);

/// The settings of a run within a budget, and what there is to say about them.
struct Fitted {
  TrainSettings settings;
  std::string note;
};
/// Throws Error where nothing is within the budget, with the least that works. A budget is that of each of `ranks`.
/// Where they are `together` here, what is free is shared by those of a machine, and the first one chooses for all.
Fitted fitted(const Device &device, const Model &model, const TrainSettings &settings, const MemoryBudget &budget,
              int64_t ranks = 1, Collective &together = *aloneCollective());
/// The same for people: its note is the table of the ways, and what was chosen, a line each.
Fitted fittedWithTable(const Device &device, const Model &model, const TrainSettings &settings,
                       const MemoryBudget &budget, int64_t ranks = 1);

} // namespace kiln
