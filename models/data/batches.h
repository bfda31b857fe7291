// Batches of a token stream: sequences in an order that each pass (epoch) shuffles anew. Seed and number of a sequence
// determine it.

#pragma once

#include "models/data/random.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace kiln {

//===-- Token streams -------------------------------------------------------------------------------------------===//
// A long sequence of tokens from which batches are cut: bytes of a text, tokens in memory, or token files.

class TokenStream {
public:
  virtual ~TokenStream() = default;
  virtual int64_t size() const = 0;
  /// Copies tokens `begin` … `begin + count`, which must exist.
  virtual void read(int64_t begin, int64_t count, int32_t *to) const = 0;
};

/// Numbers in memory.
template <class Number> class MemoryTokens : public TokenStream {
public:
  explicit MemoryTokens(std::vector<Number> tokens) : tokens(std::move(tokens)) {}
  int64_t size() const override { return std::ssize(tokens); }
  void read(int64_t begin, int64_t count, int32_t *to) const override {
    std::copy_n(tokens.begin() + begin, count, to);
  }

private:
  const std::vector<Number> tokens;
};

/// A part of another stream.
class StreamPart : public TokenStream {
public:
  StreamPart(std::shared_ptr<const TokenStream> whole, int64_t begin, int64_t count)
      : whole(std::move(whole)), first(begin), count(count) {}
  int64_t size() const override { return count; }
  void read(int64_t begin, int64_t some, int32_t *to) const override { whole->read(first + begin, some, to); }

private:
  const std::shared_ptr<const TokenStream> whole;
  const int64_t first, count;
};

//===-- Batches -------------------------------------------------------------------------------------------------===//

/// Sequences of `context` tokens, each with the tokens that follow.
struct Batch {
  std::vector<int32_t> tokens, targets; // (sequences, context)
  // Of packed documents (models/data/documents.h): positions in the document (sequences, context). For each position,
  // the range of positions that it sees, and the range that sees it, as [begin, end) (sequences, context, 2). Neither
  // number ever decreases.
  std::vector<int32_t> positions = {}, ranges = {}, queryRanges = {};
};

/// The order of the sequences of a stream.
struct PassOrder {
  int64_t sequences = 0; // of a pass, at least one
  /// The first token of each sequence of pass `pass`, counted from 0.
  std::function<std::vector<int64_t>(int64_t pass)> draw;
};

/// Each epoch divides `tokens` tokens, from a random first one on, into sequences that do not overlap, and reads them
/// in random order.
PassOrder shuffledOrder(int64_t tokens, int64_t context, uint64_t seed);

/// The order of llm.c's loader over token files, which end at `ends`. Each file is cut into consecutive windows of
/// `rows` sequences. A pass takes the files in random order, and the windows of each file in random order. Throws Error
/// for a file that is too short for a window and the token after it.
PassOrder llmcOrder(std::vector<int64_t> ends, int64_t context, int64_t rows);

class TrainBatches {
public:
  TrainBatches(std::shared_ptr<const TokenStream> text, int64_t context, PassOrder order);

  /// Sequences `first` … `first + count` of the endless stream.
  Batch sequences(int64_t first, int64_t count);
  /// Sequences of one pass over the text.
  int64_t sequencesPerPass() const { return order.sequences; }

private:
  std::shared_ptr<const TokenStream> text;
  int64_t context;
  PassOrder order;
  int64_t drawn = -1;          // the pass of `begins`
  std::vector<int64_t> begins; // first token of each sequence of that pass
};

/// The sequences of a validation text, in order. The last one may be short: its missing targets are `ignoredTarget`. So
/// a loss summed over all sequences counts every token except the first once.
inline constexpr int32_t ignoredTarget = -1;
int64_t validationSequences(int64_t tokens, int64_t context);
Batch validationBatch(const TokenStream &text, int64_t context, const std::vector<int64_t> &sequences, int64_t count);

} // namespace kiln
