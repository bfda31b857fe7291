// What a run measures of its model between steps: loss and accuracy on the validation set, and gradient norms by part.

#pragma once

#include "models/parallel/collective.h"
#include "models/train/model.h"
#include "models/train/trainer.h"

#include <functional>

namespace kiln {

//===-- Validation ----------------------------------------------------------------------------------------------===//

/// Means over targets.
struct Validation {
  double loss = 0;
  double accuracy = 0; // the share that the model ranks first
};

/// Of `taken` numbers that are evenly spaced from 0 to `all`, at most `count` from the one at `first` on.
std::vector<int64_t> evenlySpaced(int64_t first, int64_t count, int64_t taken, int64_t all);

/// Validates on the targets of `most` sequences, evenly spaced and equal each time, or of all (0), in micro-batches of
/// `batch` sequences. Returns nothing if `stop` asked for an early end. Each of `ranks` takes some of the
/// micro-batches, and all know the means.
std::optional<Validation> validate(Trainer &trainer, const TrainData &data, int64_t batch, int64_t most,
                                   const std::function<bool()> &stop, Collective &ranks = *aloneCollective());

//===-- Gradient norms ------------------------------------------------------------------------------------------===//
// Gradient norms by part of a model, for the log, computed after a step by a plan of its own.

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
