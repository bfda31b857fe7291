// Gradients of parameters that wait for each other: nobody reads them before a step's end, and a GPU computes many
// together in less time and fewer launches. What they are made of stays in the arena until then.

#pragma once

#include "kernels/matmul.h"

#include <utility>

namespace kiln {

class Gathered {
public:
  /// Whether gradients wait: on a GPU, from begin() until takeSums().
  bool isOn() const { return on; }
  void begin(const Target &target);
  /// Gradients do not wait until resume(), which is given what this returns.
  bool pause() { return std::exchange(on, false); }
  void resume(bool wasOn) { on = wasOn; }

  void add(const WeightGradient &gradient) { weights.push_back(gradient); }
  /// Launches that add up parts, which lie in a buffer of the arena.
  void add(const std::vector<Launch> &launches, const TensorRef &parts);
  /// Whether a gradient that waits is made of what this buffer holds, so that it must stay as it is.
  bool reads(const TensorRef &buffer) const;
  /// Keeps a buffer that is read until its gradient is taken.
  void hold(const TensorRef &buffer) { held.push_back(buffer); }

  /// Whether so many weights wait that more would only take memory.
  bool isFull() const { return weights.size() >= mostWeights; }
  /// The launches of the weights that wait, and the buffers that nobody reads behind them. None waits any more.
  Plan takeWeights(const Target &target, bool accumulate, std::vector<TensorRef> &released);
  /// The launches that add up parts; the same of these.
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
