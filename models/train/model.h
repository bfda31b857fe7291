// What models/train trains: any model that says which parameters it has, what a micro-batch of it brings to the device,
// and which launches give its losses and their gradient. There is no memory and no device in a model; a Build brings
// both as addresses. models/gpt2/network.h is one.

#pragma once

#include "models/nn/build.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln {

/// The sequences of a micro-batch on the host: an array for each input, in the model's order.
using HostBatch = std::vector<std::vector<int32_t>>;

/// The same on the device, and where its losses go.
struct MicroBatch {
  std::vector<TensorRef> inputs; // i32, with the extents that Model::inputs() says
  TensorRef losses;              // f32, as many as Model::targets() says
};

class Model {
public:
  virtual ~Model() = default;

  /// The parameters, placed. Their names are those of the tensors in a checkpoint.
  virtual const ParameterList &parameters() const = 0;
  /// Of weights and activations.
  virtual Type type() const = 0;

  /// What so many sequences bring to the device: first what TrainData gives, then what derived() adds.
  virtual std::vector<Shape> inputs(int64_t sequences) const = 0;
  /// Targets of so many sequences, each of which has a loss.
  virtual int64_t targets(int64_t sequences) const = 0;
  /// What the gradient needs beside a batch and the host makes of it: indices, never arithmetic of the step.
  virtual HostBatch derived(const HostBatch &) const { return {}; }

  /// Appends the launches that give the losses, and the gradient of their sum times the build's lossWeight by every
  /// parameter. Targets that are missing from a batch have a loss of 0, and no gradient comes from them.
  virtual void gradient(Build &build, const MicroBatch &batch) const = 0;
  /// The losses alone, from what TrainData gives.
  virtual void losses(Build &build, const MicroBatch &batch) const = 0;

  /// Floating-point operations of a training step on so many sequences.
  virtual double flops(int64_t sequences) const = 0;
  /// What the model is, in a few words: `4 layers, 4 heads, …`.
  virtual std::string text() const = 0;
  /// The same as a checkpoint's config.json says it beside weights of type `saved`, with all that making the model
  /// again takes.
  virtual nlohmann::ordered_json configJson(Type saved) const = 0;
};

} // namespace kiln
