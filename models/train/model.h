// The interfaces of models and of their data. A model has parameters, inputs of a micro-batch, and the launches of its
// losses and their gradient. It has no memory and no device; a Build brings both as addresses. models/gpt2/network.h is
// an example.

#pragma once

#include "models/data/host_batch.h"
#include "models/nn/build.h"

#include <map>
#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// An array that a micro-batch brings to the device.
struct Input {
  std::string name;
  Type type = i32;
  Shape extents;
};

/// A micro-batch on the device, and the tensor for its losses.
struct MicroBatch {
  BatchShape shape;
  std::map<std::string, TensorRef> inputs; // as listed by Model::inputs()
  TensorRef losses;                        // f32, as many as the shape has targets
  std::optional<TensorRef> hits = {}; // argument of losses(): 1 if the target is the most likely token, otherwise 0
  /// The input of that name. Throws Error (internal) if the model has none.
  const TensorRef &operator[](const std::string &name) const {
    const auto found = inputs.find(name);
    if (found == inputs.end())
      throw Error("expected an input '" + name + "' of a micro-batch, but there is none", Fault::internal);
    return found->second;
  }
};

class Model {
public:
  virtual ~Model() = default;

  /// The parameters, placed. Their names are those of the tensors in a checkpoint.
  virtual const ParameterList &parameters() const = 0;
  /// Of weights and activations.
  virtual Type type() const = 0;

  /// The shape of this many sequences of full length.
  virtual BatchShape shape(int64_t sequences) const = 0;
  /// The arrays that a micro-batch brings to the device: those of TrainData, and those that derive() adds.
  virtual std::vector<Input> inputs(const BatchShape &shape) const = 0;
  /// Adds the arrays that the gradient needs and the host computes from a batch: indices, never arithmetic of the step.
  virtual void derive(HostBatch &, const BatchShape &) const {}

  /// Appends the launches that compute the losses, and the gradient of their sum times the build's lossWeight by every
  /// parameter. Missing targets have loss 0 and no gradient.
  virtual void gradient(Build &build, const MicroBatch &batch) const = 0;
  /// Appends the launches of the losses only, from the arrays of TrainData.
  virtual void losses(Build &build, const MicroBatch &batch) const = 0;

  /// Number of blocks whose activations can be recomputed.
  virtual int64_t blocks() const { return 0; }

  /// Floating-point operations of a training step on a micro-batch.
  virtual double flops(const BatchShape &shape) const = 0;
  /// The fraction of a micro-batch's attention that is computed. It is below 1 for packed documents, whose cost is the
  /// sum of their squared lengths.
  virtual double attentionShare(const HostBatch &, const BatchShape &) const { return 1; }
  /// The operations with that share.
  virtual double countFlops(const HostBatch &, const BatchShape &shape) const { return flops(shape); }
  /// A short description of the model: `4 layers, 4 heads, …`.
  virtual std::string text() const = 0;
  /// The model's config.json for a checkpoint with weights of type `saved`, complete enough to construct it again.
  virtual nlohmann::ordered_json configJson(Type saved) const = 0;
};

//===-- Data ----------------------------------------------------------------------------------------------------===//
// The training data of a run: sequences, as the first inputs of a model.

/// Identifies the data of a run. Without a path: none yet, because the checkpoint comes from another program.
struct DataIdentity {
  std::string path;
  int64_t bytes = 0;
  uint64_t hash = 0; // FNV-1a of the training part
  bool sameContent(const DataIdentity &other) const { return bytes == other.bytes && hash == other.hash; }
};

class TrainData {
public:
  virtual ~TrainData() = default;

  /// Distinguishes this data from other data.
  virtual DataIdentity identity() const = 0;
  /// The shapes of its micro-batches, for training and validation; none: all have the model's. Batches of several
  /// shapes carry theirs.
  virtual std::vector<BatchShape> shapes() const { return {}; }
  /// Units of a micro-batch of `batch` sequences. Data that cuts its micro-batches itself counts micro-batches: one.
  virtual int64_t perBatch(int64_t batch) const { return batch; }
  /// Sequences `first` … `first + count` of the endless training stream, a function of the run's seed and their numbers
  /// only.
  virtual HostBatch training(int64_t first, int64_t count) = 0;
  /// How many sequences a micro-batch of these has, without making it.
  virtual int64_t trainingSequences(int64_t, int64_t count) { return count; }
  /// The number of targets in these sequences, without padding: a step's loss is the mean over them. It is called
  /// before each step, so it must be fast.
  virtual int64_t trainingTargets(int64_t first, int64_t count) = 0;
  /// Number of validation sequences, and of targets in those of the given numbers.
  virtual int64_t validationSequences() const = 0;
  virtual int64_t validationTargets(const std::vector<int64_t> &sequences) const = 0;
  /// The validation sequences of the given numbers, followed by rows without targets up to `count` rows.
  virtual HostBatch validation(const std::vector<int64_t> &sequences, int64_t count) const = 0;
};

} // namespace kiln
