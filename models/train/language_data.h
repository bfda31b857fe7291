// A text as what a run trains on: tokens, and the tokens that follow them. They are the bytes of a text, what a
// tokenizer makes of it, or files of tokens.

#pragma once

#include "models/data/documents.h"
#include "models/tokens/tokenizer.h"
#include "models/train/train_data.h"

#include <set>

namespace kiln {

/// Where the tokens come from.
struct LanguageSource {
  std::string data;                     // a text, or a pattern of files of tokens
  std::optional<std::string> held = {}; // files of tokens to validate on; without them the last tenth of the others
  const Tokenizer *tokenizer = nullptr; // of a text; without one its bytes are the tokens
  int64_t vocab = 256;                  // tokens of files are below it
  int threads = 0;                      // that encode a text; 0: as many as there are cores
  std::optional<int64_t> llmcRows = {}; // in llm.c's order, of windows of so many sequences; none: shuffled
  std::optional<DocumentMarks> documents = {}; // of documents; none: one stream, whatever its sequences cut
  double pack = 0;                             // share of a sequence that is packed with documents; 0: each is alone
  /// Sequences in a micro-batch, which is then as long as the longest of its documents where each is alone; 0: always
  /// as long as the context.
  int64_t batch = 0;
  bool givesPlaces = true; // batches of packed documents say the place of each token in its document
  std::string folder = {}; // keeps where documents are; none: they are looked for each time
};

/// What LanguageSource::llmcRows is for a run of these settings.
std::optional<int64_t> llmcRowsOf(const TrainSettings &settings);

class LanguageData : public TrainData {
public:
  /// Reads the source for sequences of `context` tokens in the order of `seed`. Throws Error where a file is none
  /// (models/data/text.h, models/data/shards.h) or there are not enough tokens.
  LanguageData(const LanguageSource &source, int64_t context, uint64_t seed);

  DataIdentity identity() const override { return known; }
  std::vector<BatchShape> shapes() const override;
  HostBatch training(int64_t first, int64_t count) override;
  int64_t trainingTargets(int64_t first, int64_t count) override;
  int64_t validationSequences() const override;
  int64_t validationTargets(int64_t first, int64_t count) const override;
  HostBatch validation(int64_t first, int64_t count) const override;

  /// What there is to say about the documents, a line each.
  std::vector<std::string> notes() const;

private:
  HostBatch inputsOf(const Batch &batch) const;

  int64_t context, batch; // 0: all are as long as the context
  bool givesPlaces;
  std::set<int64_t> lengths; // of documents that are each alone
  int64_t documentCount = 0; // to train on, and of these such as are longer than the context, or empty
  int64_t cutCount = 0, emptyCount = 0;
  DataIdentity known;
  std::shared_ptr<const TokenStream> train, held;
  std::optional<TrainBatches> batches; // of `train`, as a stream …
  std::shared_ptr<const Documents> heldDocuments;
  std::optional<DocumentBatches> documents; // … or as documents
};

} // namespace kiln
