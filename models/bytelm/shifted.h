// Sequences of bytes as a model of bytes sees them: each predicted from those before it alone.

#pragma once

#include "models/train/train_data.h"

namespace kiln {

/// Of sequences of tokens and those that follow them: what stands before each token of a sequence, −1 before the first,
/// and the token as the target. Where what follows is missing, so is what follows that.
HostBatch shifted(const HostBatch &batch, int64_t context);

/// Other data's sequences, shifted.
class ShiftedData : public TrainData {
public:
  /// Of sequences of `context`; the other data must outlive it.
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
