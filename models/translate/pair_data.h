// Training data of translation: two texts whose lines translate each other, and the tokenizers of both.

#pragma once

#include "models/data/pairs.h"
#include "models/tokens/tokenizer.h"
#include "models/train/model.h"

namespace kiln {

//===-- Data ----------------------------------------------------------------------------------------------------===//

/// The tokenizers of both sides.
struct PairTokenizers {
  Tokenizer source, target;
};
/// The special tokens of sequences: the one that begins a document, and the one that ends it or else the first again.
/// Throws Error if a tokenizer has none.
PairMarks findMarks(const PairTokenizers &tokenizers);

/// The lines of a text file, which may be compressed. Throws Error if it is unreadable or has no line.
std::vector<std::string> readLines(const std::string &path);
/// The lines of two files. Throws Error unless both have equally many.
std::pair<std::vector<std::string>, std::vector<std::string>> readLinePairs(const std::string &source,
                                                                            const std::string &target);

/// The files of the lines.
struct PairFiles {
  std::string source, target;
};

class PairData : public TrainData {
public:
  /// Pairs for training and validation, of at most `context` positions on either side. Longer ones are excluded from
  /// training, and cut in validation. Throws Error for an unreadable file, or if no pair is left.
  PairData(const PairFiles &train, const PairFiles &held, const PairTokenizers &tokenizers, int64_t context,
           const PairLimits &limits, uint64_t seed);

  DataIdentity identity() const override { return known; }
  std::vector<BatchShape> shapes() const override;
  int64_t perBatch(int64_t) const override { return 1; }
  HostBatch training(int64_t first, int64_t) override { return batches->batch(first); }
  int64_t trainingSequences(int64_t first, int64_t) override { return batches->shape(first).sequences; }
  int64_t trainingTargets(int64_t first, int64_t count) override;
  int64_t validationSequences() const override { return held->batches(); }
  int64_t validationTargets(const std::vector<int64_t> &numbers) const override;
  HostBatch validation(const std::vector<int64_t> &numbers, int64_t) const override {
    return held->batch(numbers.front());
  }

  /// Micro-batches of an epoch.
  int64_t batchesOfPass() const { return batches->batches(); }
  /// Notes about the pairs, a line each.
  std::vector<std::string> notes() const;

private:
  DataIdentity known;
  int64_t pairs = 0, leftOut = 0;
  std::optional<PairBatches> batches;
  std::unique_ptr<PairBatches> held; // without a random order
};

} // namespace kiln

namespace kiln::translate {

//===-- Tokenizers of a run -------------------------------------------------------------------------------------===//
// The tokenizers of a run, kept in its folder: one for both sides, or `target` in the folder and `source` below it.

/// Writes them into a new run's folder, and replaces older ones.
void writeRunTokens(const std::string &folder, const PairTokenizers &tokenizers);
/// Reads those of a run's folder, or of a checkpoint in one. Throws Error if there are none.
PairTokenizers readRunTokens(const std::string &folder);

} // namespace kiln::translate
