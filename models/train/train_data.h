// What a run trains on: sequences, as the first inputs of a model.

#pragma once

#include "models/train/model.h"
#include "models/train/run_state.h"

namespace kiln {

class TrainData {
public:
  virtual ~TrainData() = default;

  /// What tells this data from other data.
  virtual DataIdentity identity() const = 0;
  /// The shapes that its micro-batches may have, to train and to validate on; none: all have the model's. Batches of
  /// several shapes say theirs.
  virtual std::vector<BatchShape> shapes() const { return {}; }
  /// What a micro-batch of `batch` sequences takes of them. Data that cuts its micro-batches itself counts these: one.
  virtual int64_t perBatch(int64_t batch) const { return batch; }
  /// Sequences `first` … `first + count` of the endless stream to train on. Which they are is a function of the run's
  /// seed and their numbers alone.
  virtual HostBatch training(int64_t first, int64_t count) = 0;
  /// How many sequences a micro-batch of these has, without making it.
  virtual int64_t trainingSequences(int64_t, int64_t count) { return count; }
  /// The targets in these that are there: a step's loss is the mean over those. Cheap: it is asked for before a step.
  virtual int64_t trainingTargets(int64_t first, int64_t count) = 0;
  /// Sequences to validate on, and the targets in `count` of them from number `first` on.
  virtual int64_t validationSequences() const = 0;
  virtual int64_t validationTargets(int64_t first, int64_t count) const = 0;
  /// `count` of them from number `first` on; targets behind the last are missing.
  virtual HostBatch validation(int64_t first, int64_t count) const = 0;
};

} // namespace kiln
