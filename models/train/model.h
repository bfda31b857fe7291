// What models/train trains: any model that says which parameters it has, what a micro-batch of it brings to the device,
// and which launches give its losses and their gradient. There is no memory and no device in a model; a Build brings
// both as addresses. models/gpt2/network.h is one.

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

/// A micro-batch on the device, and where its losses go.
struct MicroBatch {
  BatchShape shape;
  std::map<std::string, TensorRef> inputs; // those of Model::inputs()
  TensorRef losses;                        // f32, as many as the shape has targets
  std::optional<TensorRef> hits = {};      // the same of losses(): 1 where the target is the likeliest, else 0
  /// The input of that name. Throws Error (internal) where the model has none.
  const TensorRef &operator[](const std::string &name) const;
};

class Model {
public:
  virtual ~Model() = default;

  /// The parameters, placed. Their names are those of the tensors in a checkpoint.
  virtual const ParameterList &parameters() const = 0;
  /// Of weights and activations.
  virtual Type type() const = 0;

  /// The shape of so many sequences that are as long as the model takes.
  virtual BatchShape shape(int64_t sequences) const = 0;
  /// What a micro-batch brings to the device: what TrainData gives, and what derive() adds.
  virtual std::vector<Input> inputs(const BatchShape &shape) const = 0;
  /// Adds what the gradient needs beside a batch and the host makes of it: indices, never arithmetic of the step.
  virtual void derive(HostBatch &, const BatchShape &) const {}

  /// Appends the launches that give the losses, and the gradient of their sum times the build's lossWeight by every
  /// parameter. Targets that are missing from a batch have a loss of 0, and no gradient comes from them.
  virtual void gradient(Build &build, const MicroBatch &batch) const = 0;
  /// The losses alone, from what TrainData gives.
  virtual void losses(Build &build, const MicroBatch &batch) const = 0;

  /// Blocks whose activations the gradient makes again where the build asks for that.
  virtual int64_t blocks() const { return 0; }

  /// Floating-point operations of a training step on a micro-batch.
  virtual double flops(const BatchShape &shape) const = 0;
  /// The share of a micro-batch's attention that is computed: less than 1 where documents are packed, each of which
  /// costs its own square.
  virtual double attentionShare(const HostBatch &, const BatchShape &) const { return 1; }
  /// The operations with that share.
  virtual double flopsOf(const HostBatch &, const BatchShape &shape) const { return flops(shape); }
  /// What the model is, in a few words: `4 layers, 4 heads, …`.
  virtual std::string text() const = 0;
  /// The same as a checkpoint's config.json says it beside weights of type `saved`, with all that making the model
  /// again takes.
  virtual nlohmann::ordered_json configJson(Type saved) const = 0;
};

} // namespace kiln
