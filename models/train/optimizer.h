// What changes a model's weights: flat buffers of weights, gradients and AdamW's moments, and the launches that end a
// step. Ranks that train together have each a part of the moments and of the masters (models/parallel/shards.h), and
// all of the weights: they exchange gradients before the norm, and what they made of their weights after the update.

#pragma once

#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "models/parallel/device_exchange.h"
#include "models/parallel/shards.h"
#include "models/train/checkpoint.h"
#include "models/train/exchange_cuts.h"
#include "models/train/memory.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"

#include <optional>

namespace kiln {

class Optimizer {
public:
  /// Of the settings it takes the optimiser's, and what decides about types. `record` is the step's, `lossFactor` what
  /// planOutliers calls so. The model must outlive it.
  Optimizer(std::shared_ptr<Device> device, const Target &target, const Model &model, const TrainSettings &settings,
            const TensorRef &record, double lossFactor, std::shared_ptr<Collective> ranks);

  /// The weights that the model computes with, and where their gradients go.
  ParameterBuffers buffers() const { return {values(), gradients()}; }
  TensorRef values() const { return value.ref().slice(0, 0, shards.count); }
  TensorRef gradients() const { return gradient.ref().slice(0, 0, shards.count); }
  const AdamWSettings &settings() const { return adamw; }
  const BufferTypes &bufferTypes() const { return types; }

  /// Random weights, zero moments.
  void initialize(uint64_t seed);
  /// Takes weights that updates change, and moments, a part at a time: all of them, of which it keeps its own.
  BufferSink sink();
  /// Calls `save` with a source of all of them, on the first rank; the others give it their parts meanwhile. Whether
  /// `save` came to its end; on the first rank what it throws is thrown.
  bool share(const std::function<void(const BufferSource &)> &save) const;

  /// Whether steps are left out for what stands out, by the loss that the record holds before update(); and the last
  /// losses and norms then (kernels/outliers.h). Nothing to set them to is an empty window.
  bool leavesOut() const { return outliers.has_value(); }
  std::vector<float> outlierWindow() const;
  void setOutlierWindow(const std::vector<float> &window);

  /// All of its launches, in order.
  Plan plan() const;
  /// Makes them ready by `ready`. Ranks exchange buckets in the order in which `backward`, the launches of a
  /// micro-batch, leaves them whole; it is the same on all.
  void prepare(const std::function<PreparedPlan(const Plan &)> &ready, const Plan &backward);
  /// Whether prepare() was called.
  bool isReady() const { return prepared; }
  /// Whether ranks exchange gradients while launches run. Then the launches of a micro-batch are run in these parts,
  /// and behind those of the last micro-batch's that leave buckets whole, exchangeNext() is called for each.
  bool overlaps() const { return between && between->overlaps(); }
  std::vector<PlanPart> cut(const Plan &backward) const {
    return cutAtBuckets(backward, gradient.ref(), shards, order);
  }
  /// Begins to exchange the next bucket, once the one before it is there.
  void exchangeNext();
  /// Exchanges what is not yet, and waits until all is there; update() does so, but for the waiting.
  void exchangeAll();
  /// Asks for norm and update with the gradients of all ranks.
  void update();
  /// Brings the sums of all ranks' gradients, of which each has its part after update(), to all.
  void gatherGradients();

private:
  /// The pieces of this rank.
  Piece mine(int64_t bucket) const { return shards.piece(bucket, ranks->rank()); }
  TensorRef whole(const Tensor &of, int64_t bucket) const;
  void addReceived();
  Plan planSum(int64_t bucket) const;
  Plan planSquaresOfMine() const;
  Plan planUpdate() const;
  /// Where a sharded buffer lies, and the bytes of an element.
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
  std::optional<Tensor> master;   // the same of what `value` is a copy of
  std::optional<Tensor> outliers; // the window of the last losses and norms
  // With several ranks:
  std::unique_ptr<DeviceExchange> between;
  Tensor received;                // a bucket's gradients of every rank, of this rank's piece
  Tensor partials;                // (ranks · P) f32, sums of squares
  std::vector<PreparedPlan> sums; // of each bucket
  std::vector<int64_t> order;     // of buckets, as they are exchanged
  size_t begun = 0;               // of them, in this step
  std::optional<int64_t> exchanging;
  PreparedPlan squares, step; // `step` alone where there is one rank
  bool prepared = false;
  mutable std::vector<char> bucketHeld; // what collect() brought
  mutable std::optional<std::pair<FlatBuffer, int64_t>> bucketOf;
};

/// Bytes that several ranks take on a device besides: for their exchanges.
int64_t exchangeBytes(const Target &target, const Shards &shards);

} // namespace kiln
