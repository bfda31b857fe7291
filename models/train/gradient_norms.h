// Gradient norms by part of a model, for the log, computed after a step by a plan of its own.

#pragma once

#include "models/train/trainer.h"

namespace kiln {

class GradientNorms {
public:
  /// Groups the parameters of the trainer's model by the beginning of their names: up to the first dot, or up to the
  /// dot after a number (`h.0`). The trainer must outlive it.
  explicit GradientNorms(Trainer &trainer);

  /// The names of the groups, in the order of their first parameters.
  const std::vector<std::string> &names() const { return groups; }
  /// The norms of the last step's gradients, before clipping. Σ norm² is the square of the step's gradient norm.
  std::vector<double> norms();

private:
  std::vector<std::string> groups;
  Tensor begins, ends, firsts, out, workspace;
  PreparedPlan ready;
  std::shared_ptr<Device> device;
};

} // namespace kiln
