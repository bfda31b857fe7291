// Two texts whose lines are translations of each other, as what a run trains on.

#pragma once

#include "models/data/pairs.h"
#include "models/tokens/tokenizer.h"
#include "models/train/train_data.h"

namespace kiln {

/// The tokenizers of both sides.
struct PairTokenizers {
  Tokenizer source, target;
};
/// The marks of sequences: the special token that begins a document, and the one that ends it, or else the same. Throws
/// Error where a tokenizer has none.
PairMarks marksOf(const PairTokenizers &tokenizers);

/// The lines of a text file, packed ones too. Throws Error for one that is none or has no line.
std::vector<std::string> readLines(const std::string &path);
/// The same of two files. Throws Error unless both have as many lines.
std::pair<std::vector<std::string>, std::vector<std::string>> readLinePairs(const std::string &source,
                                                                            const std::string &target);

/// Where the lines are.
struct PairFiles {
  std::string source, target;
};

class PairData : public TrainData {
public:
  /// Pairs to train on, and to validate on, of at most `context` places on either side: longer ones are left out of the
  /// first, and cut in the others. Throws Error where a file is none, and where no pair is left.
  PairData(const PairFiles &train, const PairFiles &held, const PairTokenizers &tokenizers, int64_t context,
           const PairLimits &limits, uint64_t seed);

  DataIdentity identity() const override { return known; }
  std::vector<BatchShape> shapes() const override;
  int64_t perBatch(int64_t) const override { return 1; }
  HostBatch training(int64_t first, int64_t) override { return batches->batch(first); }
  int64_t trainingSequences(int64_t first, int64_t) override { return batches->shape(first).sequences; }
  int64_t trainingTargets(int64_t first, int64_t count) override;
  int64_t validationSequences() const override { return held->batches(); }
  int64_t validationTargets(int64_t first, int64_t count) const override;
  HostBatch validation(int64_t first, int64_t) const override { return held->batch(first); }

  /// Micro-batches of a pass over the pairs to train on.
  int64_t batchesOfPass() const { return batches->batches(); }
  /// What there is to say about the pairs, a line each.
  std::vector<std::string> notes() const;

private:
  DataIdentity known;
  int64_t pairs = 0, leftOut = 0;
  std::optional<PairBatches> batches;
  std::unique_ptr<PairBatches> held; // draws nothing
};

} // namespace kiln
