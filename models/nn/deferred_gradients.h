// Deferred parameter gradients. Nothing reads them before the end of a step, and a GPU computes many together in less
// time and fewer launches. Their operands stay in the arena until then.

#pragma once

#include "kernels/matmul.h"

#include <utility>

namespace kiln {

class DeferredGradients {
public:
  /// Whether gradients are deferred: on a GPU, from begin() until takeSums().
  bool isOn() const { return on; }
  void begin(const Target &target);
  /// Stops deferring until resume(), which takes the value returned here.
  bool pause() { return std::exchange(on, false); }
  void resume(bool wasOn) { on = wasOn; }

  void add(const WeightGradient &gradient) { weights.push_back(gradient); }
  /// Defers launches that add partial sums from a buffer of the arena.
  void add(const std::vector<Launch> &launches, const TensorRef &parts);
  /// Whether a deferred gradient reads this buffer, which must then stay unchanged.
  bool reads(const TensorRef &buffer) const;
  /// Keeps a buffer until the gradients that read it are launched.
  void hold(const TensorRef &buffer) { held.push_back(buffer); }

  /// Whether enough weights are deferred: more would use memory without making launches faster.
  bool isFull() const { return weights.size() >= mostWeights; }
  /// The launches of all deferred weights, and the buffers that are free after them.
  Plan takeWeights(const Target &target, bool accumulate, std::vector<TensorRef> &released);
  /// The launches of all deferred sums, and the buffers that are free after them.
  Plan takeSums(std::vector<TensorRef> &released);

private:
  /// The weights of four blocks: their tiles fill any GPU many times.
  static constexpr size_t mostWeights = 16;

  bool on = false;
  std::vector<WeightGradient> weights;
  std::vector<Launch> sums;
  std::vector<TensorRef> parts, held;
};

} // namespace kiln
