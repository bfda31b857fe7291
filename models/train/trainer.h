// A GPT-2 on a device: its flat buffers, its activation arena, and the plans of a step, made once and run every step.

#pragma once

#include "kernels/adamw.h"
#include "models/data/batches.h"
#include "models/gpt2/network.h"
#include "models/train/checkpoint.h"
#include "runtime/Compile.h"

#include <functional>

namespace kiln {

/// Bytes that a model takes. Nothing else is allocated on the device while it runs.
struct MemoryPlan {
  int64_t parameters = 0, gradients = 0, moments = 0; // flat buffers
  int64_t activations = 0;                            // the arena
  int64_t workspace = 0;                              // of the kernels
  int64_t batch = 0;                                  // tokens, targets, index, losses
  std::vector<Arena::Entry> buffers;                  // of the arena, in the order of a training step
  size_t launches = 0;                                // in a micro-batch
  int64_t total() const { return parameters + gradients + moments + activations + workspace + batch; }
};
/// The plan of training with `batch` sequences, without allocating anything.
MemoryPlan planMemory(const Target &target, const Network &network, int64_t batch);

/// What a step reports.
struct UpdateResult {
  double loss = 0;         // mean over the step's tokens, before the update
  double gradientNorm = 0; // before clipping; where it is not finite the update was left out
};

class Gpt2 {
public:
  /// For predictions: `batch` sequences at a time.
  Gpt2(std::shared_ptr<Device> device, const Gpt2Config &config, int64_t batch);
  /// For training: every step takes `accumulate` micro-batches of `batch` sequences.
  Gpt2(std::shared_ptr<Device> device, const Gpt2Config &config, int64_t batch, int64_t accumulate);

  const Network &network() const { return net; }

  /// Random weights, zero moments.
  void initialize(uint64_t seed);
  void upload(const HostBuffers &buffers);
  HostBuffers download() const;
  void uploadWeights(const std::vector<char> &values);
  /// The gradient buffer, for tests.
  std::vector<float> gradients() const { return gradient.downloadFloats(); }

  /// Begins update number `step`, counted from 1, with the learning rate `rate`: all that the host has to say about it.
  void beginStep(const TrainSettings &settings, double rate, int64_t step);
  /// Compiles the kernels of a training step, several at a time, so that the first step compiles nothing.
  void prepare();

  /// Adds micro-batch number `micro` of a step to the gradients; number 0 replaces what they hold.
  void addGradient(const Batch &batch, int64_t micro);
  /// Clips and applies the gradients, and waits for the end of the step, where alone the device is read.
  UpdateResult update();
  /// Sum of the losses of a batch's targets; ignored ones count nothing.
  double lossSum(const Batch &batch);
  /// Logits of the token after `tokens`, of which there are 1 … context; batch size 1.
  std::vector<float> logitsAfter(const std::vector<int32_t> &tokens);

private:
  void allocateBatch();
  /// Logits after row `row` of the batch.
  Plan planPrediction(Arena &arena, int64_t row) const;
  void uploadBatch(const Batch &batch);

  /// What the parts of a training step hand their plans to, in order: run() trains, prepare() only gathers.
  using Visit = std::function<void(const Plan &)>;
  void visitGradient(int64_t micro, const Visit &visit) const;
  void visitUpdate(const Visit &visit) const;
  void run(const Plan &plan);

  std::shared_ptr<Device> device;
  Network net;
  int64_t batch, accumulate;
  Tensor value, gradient, first, second; // flat, laid out as net.parameters()
  Tensor tokens, targets, indexTokens, indexStarts, indexPositions, losses;
  Tensor totals;       // (accumulate)
  Tensor record;       // (stepFields)
  Tensor logits;       // (1, vocab)
  AdamWSettings adamw; // of the step that began last
  Tensor arena, workspace;
  BatchRefs refs;
  Plan firstMicro, laterMicro, evaluation;
};

} // namespace kiln
