// The bytes of a text as what a run trains on: tokens, and the tokens that follow them.

#pragma once

#include "models/data/batches.h"
#include "models/data/text.h"
#include "models/train/train_data.h"

namespace kiln {

class TextData : public TrainData {
public:
  /// Reads `path` (models/data/text.h) for sequences of `context` bytes in the order of `seed`. Throws Error.
  TextData(const std::string &path, int64_t context, uint64_t seed);

  DataIdentity identity() const override;
  HostBatch training(int64_t first, int64_t count) override;
  int64_t trainingTargets(int64_t first, int64_t count) const override;
  int64_t validationSequences() const override;
  int64_t validationTargets(int64_t first, int64_t count) const override;
  HostBatch validation(int64_t first, int64_t count) const override;

private:
  std::string path;
  int64_t context;
  Text text;
  TrainBatches batches;
};

} // namespace kiln
