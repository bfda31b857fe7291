// The training data of a run: sequences, as the first inputs of a model.

#pragma once

#include "models/train/model.h"
#include "models/train/run_state.h"

namespace kiln {

class TrainData {
public:
  virtual ~TrainData() = default;

  /// Distinguishes this data from other data.
  virtual DataIdentity identity() const = 0;
  /// The shapes of its micro-batches, for training and validation; none: all have the model's. Batches of several
  /// shapes carry theirs.
  virtual std::vector<BatchShape> shapes() const { return {}; }
  /// Units of a micro-batch of `batch` sequences. Data that cuts its micro-batches itself counts micro-batches: one.
  virtual int64_t perBatch(int64_t batch) const { return batch; }
  /// Sequences `first` … `first + count` of the endless training stream, a function of the run's seed and their numbers
  /// only.
  virtual HostBatch training(int64_t first, int64_t count) = 0;
  /// How many sequences a micro-batch of these has, without making it.
  virtual int64_t trainingSequences(int64_t, int64_t count) { return count; }
  /// The number of targets in these sequences, without padding: a step's loss is the mean over them. It is called
  /// before each step, so it must be fast.
  virtual int64_t trainingTargets(int64_t first, int64_t count) = 0;
  /// Number of validation sequences, and of targets in `count` of them from number `first` on.
  virtual int64_t validationSequences() const = 0;
  virtual int64_t validationTargets(int64_t first, int64_t count) const = 0;
  /// `count` of them from number `first` on; targets after the last are missing.
  virtual HostBatch validation(int64_t first, int64_t count) const = 0;
};

} // namespace kiln
