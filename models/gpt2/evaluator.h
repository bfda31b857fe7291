// Losses of single tokens with a trained model, and whether each was the most likely token.

#pragma once

#include "models/gpt2/network.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"

#include <map>

namespace kiln {

class Evaluator {
public:
  /// Uploads `weights`, which have the network's type and layout, for batches of `sequences` of full context. The
  /// network must outlive it.
  Evaluator(std::shared_ptr<Device> device, const Network &network, const std::vector<char> &weights,
            int64_t sequences);

  struct Result {
    std::vector<float> losses, hits; // (sequences · context), 0 for missing targets
  };
  /// For batches of this many sequences. A batch has all inputs of the network's losses.
  Result evaluate(const HostBatch &batch);

  int64_t sequences() const { return shape.sequences; }
  int64_t length() const { return shape.target; }

private:
  Plan plan(Arena &placed) const;

  std::shared_ptr<Device> device;
  const Network &network;
  BatchShape shape;
  Tensor value, losses, hits;
  std::map<std::string, Tensor> inputs;
  Tensor arena, workspace;
  PreparedPlan ready;
};

} // namespace kiln
