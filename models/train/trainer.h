// A model on a device, being trained: its flat buffers, its activation arena, and the plans of a step, made ready once
// and then run every step without looking anything up.

#pragma once

#include "models/train/optimizer.h"

#include <array>
#include <functional>
#include <optional>

namespace kiln {

/// What a step reports.
struct StepResult {
  double loss = 0;             // mean over the step's targets that are there, before the update
  double gradientNorm = 0;     // before clipping
  bool applied = true;         // the update; it is left out where the norm is not finite
  double lossScale = 1;        // of this step
  bool isOutlier = false;      // it is left out for its loss or its norm, though these are numbers
  double lossZ = 0, normZ = 0; // how many deviations they are above the last ones' mean; 0 before there are enough
};

/// What a trainer plans for, with micro-batches of so many shapes: the device's target with the precision that the
/// settings ask for, elastic where there are several. Micro-batches that would not fill a GPU are of one bucket there.
Target targetOf(const Device &device, const TrainSettings &settings, size_t shapes);

class Trainer {
public:
  /// Every step takes `settings.accumulate` micro-batches of `settings.batch` sequences. Of the settings it takes the
  /// optimiser's too, and what decides about types beside the model's own. The model must outlive it.
  Trainer(std::shared_ptr<Device> device, const Model &model, const TrainSettings &settings);
  /// The same for micro-batches of another shape than `model.shape(settings.batch)`, which says the sequences too.
  Trainer(std::shared_ptr<Device> device, const Model &model, const TrainSettings &settings, const BatchShape &shape)
      : Trainer(std::move(device), model, settings, std::vector{shape}) {}
  /// The same for micro-batches of any of these shapes, which say theirs where there are several. Their kernels are
  /// picked for an elastic target: few serve them all, and prepare() makes them.
  /// `ranks` train it together, each with some of the micro-batches of a step; what follows says which of its calls all
  /// of them make.
  Trainer(std::shared_ptr<Device> device, const Model &model, const TrainSettings &settings,
          const std::vector<BatchShape> &shapes, std::shared_ptr<Collective> ranks = aloneCollective());

  /// Random weights, zero moments.
  void initialize(uint64_t seed) { optimizer.initialize(seed); }
  /// Weights of keptType(), and moments.
  void upload(const HostBuffers &buffers);
  HostBuffers download() const;
  /// Has all of them saved; see Optimizer. All ranks.
  bool share(const std::function<void(const BufferSource &)> &save) const { return optimizer.share(save); }
  /// Takes them a part at a time; weights are of keptType().
  BufferSink sink() { return optimizer.sink(); }
  void uploadWeights(const std::vector<char> &values);
  /// The type of the weights that updates change; those that the model computes with follow from them.
  Type keptType() const { return optimizer.bufferTypes().kept; }
  /// Whether the loss is scaled, and what the next step multiplies it by.
  bool scalesLoss() const { return model.type() == f16; }
  const LossScale &lossScale() const { return scale; }
  void setLossScale(const LossScale &next) { scale = next; }
  /// Whether steps are left out for what stands out, and the last losses and norms then (kernels/outliers.h); nothing
  /// to set them to is an empty window.
  bool leavesOut() const { return optimizer.leavesOut(); }
  std::vector<float> outlierWindow() const { return optimizer.outlierWindow(); }
  void setOutlierWindow(const std::vector<float> &window) { optimizer.setOutlierWindow(window); }
  /// How products of f32 are computed.
  Precision precision() const { return target.precisionOf(model.type()); }
  /// The gradient buffer, times the loss scale, for tests.
  std::vector<float> gradients() const;
  /// Brings the sums of all ranks' gradients to all, once they were updated with. All ranks.
  void gatherGradients() { optimizer.gatherGradients(); }

  /// Makes the launches of a training step and of an evaluation ready, their kernels compiled several at a time, so
  /// that none of these compiles anything. Without it the first one does. Of several shapes it makes the kernels of all
  /// ready; what compiles after that throws Error, which names the shape.
  void prepare();

  /// Begins update `number`, counted from 1, with the learning rate `rate`: all that the host has to say about it. Its
  /// micro-batches, those of all ranks, have `targets` in all; when that is not given, every one that they have room
  /// for. What is dropped follows from `step`, the update's number unless that is given: one that is taken again, after
  /// a step that was skipped, drops others.
  void beginStep(double rate, int64_t number, std::optional<int64_t> targets = {}, std::optional<int64_t> step = {});
  /// Adds micro-batch number `micro` of a step to the gradients; number 0, and the first after beginStep(), replaces
  /// what they hold. Behind the last one of a rank, that with which those of all are `settings.accumulate`, comes
  /// update(): GPUs exchange gradients while it runs.
  void addGradient(const HostBatch &batch, int64_t micro);
  /// Leaves out a micro-batch of so many sequences that another rank takes: what is dropped of a sequence depends on
  /// its number in the step.
  void leaveOut(int64_t others) { sequences += others; }
  /// Clips and applies the gradients, and waits for the end of the step, where alone the device is read. Where their
  /// norm is not finite, nothing changes but the loss scale. All ranks, each of which has added a micro-batch.
  StepResult update();
  /// One launch of the step and its kernel's name.
  struct NamedLaunch {
    std::string label, kernel;
    PreparedPlan run;
    double flops = 0;        // of its matrix products
    int64_t bytes = 0;       // that it goes through
    std::string shapes = {}; // of its arguments
    bool isAttention = false;
  };
  /// The launches that a step of one micro-batch consists of, in order, each ready by itself: for those who measure
  /// them. Run after addGradient(), which brings a batch to the device.
  std::vector<NamedLaunch> launches();
  /// From now on hands the launches of gradients and updates to `watcher`, which asks for all of them in their order,
  /// instead of asking for them itself; none: no more. What a step computes is the same.
  using Watcher = std::function<void(const std::vector<NamedLaunch> &)>;
  void watch(Watcher watcher);
  /// Over the targets of a batch, of which missing ones count nothing: the sum of the losses, and how many the model
  /// holds likeliest.
  struct Sums {
    double losses = 0, hits = 0;
  };
  Sums sums(const HostBatch &batch);
  double lossSum(const HostBatch &batch) { return sums(batch).losses; }

  /// What it runs on and trains, and where its weights, gradients and the step's record are, for those who look at them
  /// between steps.
  const std::shared_ptr<Device> &machine() const { return device; }
  const Model &trained() const { return model; }
  TensorRef weights() const { return optimizer.values(); }
  TensorRef gradientRef() const { return optimizer.gradients(); }
  TensorRef stepRecord() const { return record.ref(); }
  /// All that a step or an evaluation has to write before it reads it, whatever was there.
  std::vector<TensorRef> scratch() const;

private:
  /// What a micro-batch is run for.
  enum class Pass { first, later, evaluation };
  /// Launches, and the buckets that ranks exchange behind them.
  struct ReadyPart {
    PreparedPlan run;
    int64_t buckets = 0;
  };
  /// A micro-batch of a shape, whose arrays lie where those of all do, and its launches, made ready when it first
  /// comes.
  struct Passes {
    MicroBatch batch;
    std::array<std::vector<ReadyPart>, 3> ready;   // by Pass
    std::array<std::vector<NamedLaunch>, 3> apart; // the same one by one, for a watcher
    int64_t used = 0;                              // when it last was
    double attentionShare = 1;                     // of the batch that is there (Model::attentionShare)
  };

  Plan planGradient(const MicroBatch &batch, bool adds) const;
  Plan planEvaluation(const MicroBatch &batch) const;
  Plan planOf(const MicroBatch &batch, Pass pass) const;
  /// A field of the step's record, (1).
  TensorRef field(StepField name) const { return record.ref().slice(0, static_cast<int64_t>(name), 1); }
  MicroBatch batchOf(const BatchShape &shape) const;
  void uploadInputs(const MicroBatch &to, const HostBatch &batch);
  /// What sites of dropout need to know of a micro-batch whose first sequence is number `first` of the step.
  void uploadSites(int64_t first);
  PreparedPlan ready(const Plan &plan);
  std::vector<NamedLaunch> apart(const Plan &plan);
  const std::vector<NamedLaunch> &apartOf(Passes &of, Pass pass);
  Passes &passesOf(const HostBatch &batch);
  std::vector<ReadyPart> readyParts(const Plan &plan, Pass pass);
  /// `isLast` where the gradients are those of the step when it has run: then ranks exchange them meanwhile.
  void run(Passes &passes, Pass pass, bool isLast = false);

  std::shared_ptr<Device> device;
  const Target target; // the device's, with the precision that the settings ask for
  const Model &model;
  TrainSettings settings;
  const std::vector<BatchShape> shapes;
  const std::shared_ptr<Collective> ranks;
  LossScale scale;
  std::map<std::string, Tensor> inputs; // each as large as the largest shape's
  std::optional<Tensor> sites; // (sites, 2) i64: of each site of dropout its key in this step, and the first sequence
  Tensor losses, hits;         // of a micro-batch
  Tensor sum, hitSum;          // of an evaluation, (1)
  Tensor record;               // (stepFields)
  Optimizer optimizer;
  int64_t targets = 0;   // of the step that was begun
  int64_t draw = 0;      // the number that what it drops follows from
  int64_t sequences = 0; // that its micro-batches so far had
  bool isFresh = true;   // it has no gradient yet
  MemoryPlan memory;
  Tensor arena;
  std::vector<Tensor> workspaces;     // the last one is taken; those before it are of launches that have them
  std::vector<NamedLaunch> stepApart; // the optimiser's, for a watcher
  Watcher watcher;
  std::map<BatchShape, Passes> passes;
  int64_t uses = 0; // of passes
};

/// The bytes of `from` into a tensor of i32.
void uploadAll(Tensor &to, const std::vector<int32_t> &from);

} // namespace kiln
