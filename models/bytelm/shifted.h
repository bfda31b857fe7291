// Shifts sequences right by one, so that each byte is predicted from those before it in its sequence.

#pragma once

#include "models/train/train_data.h"

namespace kiln {

/// From sequences of tokens and their successors: the inputs are the tokens before each token, −1 before the first, and
/// the targets are the tokens. If the successor of a token is missing, the targets after it are missing too.
HostBatch shifted(const HostBatch &batch, int64_t context);

/// Data with shifted sequences.
class ShiftedData : public TrainData {
public:
  /// Shifts sequences of `context` tokens; the other data must outlive it.
  ShiftedData(TrainData &data, int64_t context) : data(data), context(context) {}

  DataIdentity identity() const override { return data.identity(); }
  HostBatch training(int64_t first, int64_t count) override { return shifted(data.training(first, count), context); }
  int64_t trainingTargets(int64_t, int64_t count) override { return count * context; }
  int64_t validationSequences() const override { return data.validationSequences(); }
  int64_t validationTargets(int64_t first, int64_t count) const override;
  HostBatch validation(int64_t first, int64_t count) const override {
    return shifted(data.validation(first, count), context);
  }

private:
  TrainData &data;
  int64_t context;
};

} // namespace kiln
