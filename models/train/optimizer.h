// The optimizer: flat buffers of weights, gradients and AdamW's moments, and the launches that end a step. With several
// ranks each has a part of the moments and master weights (ZeRO-1, models/parallel/shards.h) and all weights. They
// exchange gradients before the norm, and updated weights after the update.

#pragma once

#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "models/parallel/device_exchange.h"
#include "models/parallel/shards.h"
#include "models/train/checkpoint.h"
#include "models/train/memory.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"

#include <optional>

namespace kiln {

class Optimizer {
public:
  /// Uses the optimizer's settings, and those that decide about types. `record` is the step's, `lossFactor` as in
  /// planOutliers. The model must outlive it.
  Optimizer(std::shared_ptr<Device> device, const Target &target, const Model &model, const TrainSettings &settings,
            const TensorRef &record, double lossFactor, std::shared_ptr<Collective> ranks);

  /// The weights that the model computes with, and their gradients.
  ParameterBuffers buffers() const { return {values(), gradients()}; }
  TensorRef values() const { return value.ref().slice(0, 0, shards.count); }
  TensorRef gradients() const { return gradient.ref().slice(0, 0, shards.count); }
  const AdamWSettings &settings() const { return adamw; }
  const BufferTypes &bufferTypes() const { return types; }

  /// Random weights, zero moments.
  void initialize(uint64_t seed);
  /// Loads weights and moments in parts. The source has those of all ranks; this rank keeps its own.
  BufferSink sink();
  /// On the first rank, calls `save` with a source of all of them; the other ranks send their parts. Returns whether
  /// `save` succeeded. The first rank passes on an exception of `save`.
  bool share(const std::function<void(const BufferSource &)> &save) const;

  /// Whether outliers are skipped, by the loss in the record before update(); and the window of the last losses and
  /// norms (kernels/outliers.h). Setting nothing means an empty window.
  bool leavesOut() const { return outliers.has_value(); }
  std::vector<float> outlierWindow() const;
  void setOutlierWindow(const std::vector<float> &window);

  /// All of its launches, in order.
  Plan plan() const;
  /// Prepares its launches with `ready`. Ranks exchange buckets in the order in which `backward`, the launches of a
  /// micro-batch, completes them; the order is equal on all ranks.
  void prepare(const std::function<PreparedPlan(const Plan &)> &ready, const Plan &backward);
  /// Whether prepare() was called.
  bool isReady() const { return prepared; }
  /// Whether ranks exchange gradients while launches run. Then a micro-batch is run in these parts. In
  /// the last micro-batch exchangeNext() is called for each bucket that a part has completed.
  bool overlaps() const { return between && between->overlaps(); }
  std::vector<PlanPart> cut(const Plan &backward) const {
    return cutAtBuckets(backward, gradient.ref(), shards, order);
  }
  /// Begins to exchange the next bucket, after the one before it has arrived.
  void exchangeNext();
  /// Exchanges the remaining buckets and waits for all. update() does this without the wait.
  void exchangeAll();
  /// Launches norm and update with the gradients of all ranks.
  void update();
  /// Gathers the summed gradients on all ranks; after update() each has its part of them.
  void gatherGradients();

private:
  /// The piece of this rank.
  Piece mine(int64_t bucket) const { return shards.piece(bucket, ranks->rank()); }
  TensorRef whole(const Tensor &of, int64_t bucket) const;
  void addReceived();
  Plan planSum(int64_t bucket) const;
  Plan planSquaresOfMine() const;
  Plan planUpdate() const;
  /// The memory of a sharded buffer, and the bytes of an element.
  const Tensor &held(FlatBuffer which) const;
  void read(FlatBuffer which, int64_t begin, int64_t count, void *to) const;
  /// Bucket `bucket` of all ranks, in host memory.
  void collect(FlatBuffer which, int64_t bucket) const;

  std::shared_ptr<Device> device;
  const Target target;
  const Model &model;
  const std::shared_ptr<Collective> ranks;
  const Shards shards;
  const BufferTypes types;
  AdamWSettings adamw;
  OutlierLimits limits;
  const double lossFactor;
  TensorRef record;
  Tensor value, gradient;         // flat, laid out as model.parameters(), and padding
  Tensor first, second;           // of this rank's pieces
  std::optional<Tensor> master;   // fp32 master weights of this rank's pieces
  std::optional<Tensor> outliers; // the window of the last losses and norms
  // With several ranks:
  std::unique_ptr<DeviceExchange> between;
  Tensor received;                // a bucket's gradients from every rank, for this rank's piece
  Tensor partials;                // (ranks · P) f32, sums of squares
  std::vector<PreparedPlan> sums; // for each bucket
  std::vector<int64_t> order;     // of buckets, in exchange order
  size_t begun = 0;               // number of them, in this step
  std::optional<int64_t> exchanging;
  PreparedPlan squares, step; // `step` only with one rank
  bool prepared = false;
  mutable std::vector<char> bucketHeld; // result of collect()
  mutable std::optional<std::pair<FlatBuffer, int64_t>> bucketOf;
};

/// Additional device memory of several ranks, for their exchanges.
int64_t exchangeBytes(const Target &target, const Shards &shards);

} // namespace kiln
