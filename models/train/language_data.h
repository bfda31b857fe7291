// Training data of a language model: the bytes of a text, the tokens of a text, or token files.

#pragma once

#include "models/data/documents.h"
#include "models/tokens/tokenizer.h"
#include "models/train/model.h"

#include <set>

namespace kiln {

/// The source of the tokens.
struct LanguageSource {
  std::string data;                            // a text file, or a pattern of token files
  std::optional<std::string> held = {};        // token files to validate on; none: the last tenth of `data`
  const Tokenizer *tokenizer = nullptr;        // for a text; none: bytes are tokens
  int64_t vocab = 256;                         // bound of the numbers in token files
  int threads = 0;                             // for encoding a text; 0: all cores
  std::optional<int64_t> llmcRows = {};        // llm.c's order, with windows of this many sequences; none: shuffled
  std::optional<DocumentMarks> documents = {}; // of documents; none: one stream, cut anywhere
  double pack =
      0; // packed documents: a sequence takes another document while less than this share is full; 0: one document each
  /// Sequences in a micro-batch, which is then as long as its longest document, without packing. 0: always as long as
  /// the context.
  int64_t batch = 0;
  bool givesPlaces = true; // batches of packed documents give the position of each token in its document
  std::string folder = {}; // where to keep the index of documents; none: search each time
};

/// LanguageSource::llmcRows for these settings.
std::optional<int64_t> rowsOfLlmc(const TrainSettings &settings);

class LanguageData : public TrainData {
public:
  /// Reads the source for sequences of `context` tokens in the order of `seed`. Throws Error for an unsuitable file
  /// (models/data/text.h, models/data/shards.h) or too few tokens.
  LanguageData(const LanguageSource &source, int64_t context, uint64_t seed);

  DataIdentity identity() const override { return known; }
  std::vector<BatchShape> shapes() const override;
  HostBatch training(int64_t first, int64_t count) override;
  int64_t trainingTargets(int64_t first, int64_t count) override;
  int64_t validationSequences() const override;
  int64_t validationTargets(const std::vector<int64_t> &sequences) const override;
  HostBatch validation(const std::vector<int64_t> &sequences, int64_t count) const override;

  /// Notes about the documents, a line each.
  std::vector<std::string> notes() const;

private:
  HostBatch makeInputs(const Batch &batch) const;

  int64_t context, batch; // 0: all sequences are as long as the context
  bool givesPlaces;
  std::set<int64_t> lengths; // of documents, each in a sequence of its own
  int64_t documentCount = 0; // for training, and of these the ones that are longer than the context, or empty
  int64_t cutCount = 0, emptyCount = 0;
  DataIdentity known;
  std::shared_ptr<const TokenStream> train, held;
  std::optional<TrainBatches> batches; // from `train`, as a stream …
  std::shared_ptr<const Documents> heldDocuments;
  std::optional<DocumentBatches> documents; // … or as documents
};

} // namespace kiln
