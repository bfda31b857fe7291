// A model in training on a device: its flat buffers, its activation arena, and the plans of a step. The plans are
// prepared once and run every step without any lookup.

#pragma once

#include "models/train/optimizer.h"

#include <array>
#include <functional>
#include <optional>

namespace kiln {

/// The report of a step.
struct StepResult {
  double loss = 0;             // mean over the step's existing targets, before the update
  double gradientNorm = 0;     // before clipping
  bool applied = true;         // whether the update was applied; a non-finite norm skips it
  double lossScale = 1;        // of this step
  bool isOutlier = false;      // the update was skipped for an outlying loss or norm
  double lossZ = 0, normZ = 0; // standard deviations above the recent mean; 0 until there are enough values
};

/// The target of a trainer's plans, for micro-batches of these shapes: the device's target with the settings'
/// precision, elastic if there are several shapes. On a GPU, micro-batches too small to fill it share a bucket.
Target chooseTarget(const Device &device, const TrainSettings &settings, size_t shapes);

class Trainer {
public:
  /// Every step takes `settings.accumulate` micro-batches of `settings.batch` sequences. It also uses the settings of
  /// the optimizer, and those of types that the model does not fix. The model must outlive it.
  Trainer(std::shared_ptr<Device> device, const Model &model, const TrainSettings &settings);
  /// As above, for micro-batches of another shape than `model.shape(settings.batch)`; the shape also gives the number
  /// of sequences.
  Trainer(std::shared_ptr<Device> device, const Model &model, const TrainSettings &settings, const BatchShape &shape)
      : Trainer(std::move(device), model, settings, std::vector{shape}) {}
  /// As above, for micro-batches of several shapes, each of which carries its shape. Their kernels are picked for an
  /// elastic target: a few kernels serve all shapes, and prepare() compiles them. `ranks` train together, each with
  /// some of the micro-batches of a step; comments below say which calls all ranks make.
  Trainer(std::shared_ptr<Device> device, const Model &model, const TrainSettings &settings,
          const std::vector<BatchShape> &shapes, std::shared_ptr<Collective> ranks = aloneCollective());

  /// Random weights, zero moments.
  void initialize(uint64_t seed) { optimizer.initialize(seed); }
  /// Weights of keptType(), and moments.
  void upload(const HostBuffers &buffers);
  HostBuffers download() const;
  /// Saves weights and moments; see Optimizer. All ranks call it.
  bool share(const std::function<void(const BufferSource &)> &save) const { return optimizer.share(save); }
  /// Loads weights, of keptType(), and moments in parts.
  BufferSink sink() { return optimizer.sink(); }
  void uploadWeights(const std::vector<char> &values);
  /// The type of the weights that AdamW updates. The model computes with these or with narrow copies.
  Type keptType() const { return optimizer.bufferTypes().kept; }
  /// Whether the loss is scaled, and the loss scale of the next step.
  bool scalesLoss() const { return model.type() == f16; }
  const LossScale &lossScale() const { return scale; }
  void setLossScale(const LossScale &next) { scale = next; }
  /// Whether outliers are skipped, and the window of the last losses and norms (kernels/outliers.h). An empty vector
  /// sets an empty window.
  bool leavesOut() const { return optimizer.leavesOut(); }
  std::vector<float> outlierWindow() const { return optimizer.outlierWindow(); }
  void setOutlierWindow(const std::vector<float> &window) { optimizer.setOutlierWindow(window); }
  /// The precision of fp32 GEMMs.
  Precision precision() const { return target.precisionOf(model.type()); }
  /// The gradient buffer, times the loss scale, for tests.
  std::vector<float> gradients() const;
  /// Gathers the summed gradients on all ranks, after their update. All ranks call it.
  void gatherGradients() { optimizer.gatherGradients(); }

  /// Prepares the launches of a training step and of an evaluation, and compiles their kernels in parallel, so that
  /// none of these calls compiles. Otherwise the first one does. With several shapes it prepares the kernels of all; a
  /// later compilation throws Error, which names the shape.
  void prepare();

  /// Begins update `number`, counted from 1, with the learning rate `rate`. Its micro-batches, over all ranks, have
  /// `targets` in total; default: all that they have room for. Dropout follows from `step`, by default the update's
  /// number. A step that is repeated after a skipped one has other dropout.
  void beginStep(double rate, int64_t number, std::optional<int64_t> targets = {}, std::optional<int64_t> step = {});
  /// Adds micro-batch number `micro` of a step to the gradients. Number 0, and the first one after beginStep(),
  /// replaces their contents. After a rank's last one, which completes `settings.accumulate` over all ranks, update()
  /// must follow, because GPUs exchange gradients while it runs.
  void addGradient(const HostBatch &batch, int64_t micro);
  /// Skips a micro-batch of this many sequences that another rank takes. Dropout depends on the number of a sequence in
  /// the step.
  void leaveOut(int64_t others) { sequences += others; }
  /// Clips and applies the gradients, and waits for the end of the step; only then the device is read. A non-finite
  /// norm changes only the loss scale. All ranks call it, after each has added a micro-batch.
  StepResult update();
  /// One launch of the step and its kernel's name.
  struct NamedLaunch {
    std::string label, kernel;
    PreparedPlan run;
    double flops = 0;        // of its GEMMs
    int64_t bytes = 0;       // moved by it
    std::string shapes = {}; // of its arguments
    bool isAttention = false;
  };
  /// The launches of a step with one micro-batch, in order, each prepared separately, for measuring. Run after
  /// addGradient(), which brings a batch to the device.
  std::vector<NamedLaunch> launches();
  /// From now on passes the launches of gradients and updates to `watcher`, which must run all of them in order; none:
  /// stop. The results do not change.
  using Watcher = std::function<void(const std::vector<NamedLaunch> &)>;
  void watch(Watcher watcher);
  /// Over the existing targets of a batch: the sum of the losses, and the number of targets that the model ranks first.
  struct Sums {
    double losses = 0, hits = 0;
  };
  Sums sums(const HostBatch &batch);
  double lossSum(const HostBatch &batch) { return sums(batch).losses; }

  /// The device, and the tensors of weights, gradients and the step's record, for inspection between steps.
  const std::shared_ptr<Device> &machine() const { return device; }
  const Model &trained() const { return model; }
  TensorRef weights() const { return optimizer.values(); }
  TensorRef gradientRef() const { return optimizer.gradients(); }
  TensorRef stepRecord() const { return record.ref(); }
  /// The buffers that a step or an evaluation must write before it reads them.
  std::vector<TensorRef> scratch() const;

private:
  /// The purpose of a micro-batch.
  enum class Pass { first, later, evaluation };
  /// Launches, and the number of buckets that ranks exchange after them.
  struct ReadyPart {
    PreparedPlan run;
    int64_t buckets = 0;
  };
  /// The launches of a micro-batch of a shape, prepared when the shape first occurs. All shapes share their arrays.
  struct Passes {
    MicroBatch batch;
    std::array<std::vector<ReadyPart>, 3> ready;   // by Pass
    std::array<std::vector<NamedLaunch>, 3> apart; // these launches one by one, for a profiler
    int64_t used = 0;                              // when it last was
    double attentionShare = 1;                     // of the batch that is there (Model::attentionShare)
  };

  Plan planGradient(const MicroBatch &batch, bool adds) const;
  Plan planEvaluation(const MicroBatch &batch) const;
  Plan makePlan(const MicroBatch &batch, Pass pass) const;
  /// A field of the step's record, (1).
  TensorRef field(StepField name) const { return record.ref().slice(0, static_cast<int64_t>(name), 1); }
  MicroBatch allocateBatch(const BatchShape &shape) const;
  void uploadInputs(const MicroBatch &to, const HostBatch &batch);
  /// Uploads the dropout sites' data for a micro-batch whose first sequence is number `first` of the step.
  void uploadSites(int64_t first);
  PreparedPlan ready(const Plan &plan);
  std::vector<NamedLaunch> apart(const Plan &plan);
  const std::vector<NamedLaunch> &launchesByName(Passes &of, Pass pass);
  Passes &findPasses(const HostBatch &batch);
  std::vector<ReadyPart> readyParts(const Plan &plan, Pass pass);
  /// `isLast`: afterwards the gradients are those of the step, and ranks exchange them meanwhile.
  void run(Passes &passes, Pass pass, bool isLast = false);

  std::shared_ptr<Device> device;
  const Target target; // the device's, with the settings' precision
  const Model &model;
  TrainSettings settings;
  const std::vector<BatchShape> shapes;
  const std::shared_ptr<Collective> ranks;
  LossScale scale;
  std::map<std::string, Tensor> inputs; // each as large as the largest shape's
  std::optional<Tensor> sites; // (sites, 2) i64: for each dropout site its key in this step, and the first sequence
  Tensor losses, hits;         // of a micro-batch
  Tensor sum, hitSum;          // of an evaluation, (1)
  Tensor record;               // (stepFields)
  Optimizer optimizer;
  int64_t targets = 0;   // of the present step
  int64_t draw = 0;      // the step that dropout follows from
  int64_t sequences = 0; // of its micro-batches so far
  bool isFresh = true;   // no gradient has been computed yet
  MemoryPlan memory;
  Tensor arena;
  std::vector<Tensor> workspaces;     // only the last one is in use; launches still need the earlier ones
  std::vector<NamedLaunch> stepApart; // the optimizer's, for a watcher
  Watcher watcher;
  std::map<BatchShape, Passes> passes;
  int64_t uses = 0; // counts uses of passes
};

} // namespace kiln
