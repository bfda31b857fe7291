// Norms of the gradients of a model's parts, for its log: of a step that was taken, in a plan of its own.

#pragma once

#include "models/train/trainer.h"

namespace kiln {

class GroupNorms {
public:
  /// Of the trainer's model, whose parameters are a group where their names begin alike: up to the first dot, or up to
  /// the one behind a number (`h.0`). The trainer must outlive it.
  explicit GroupNorms(Trainer &trainer);

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
