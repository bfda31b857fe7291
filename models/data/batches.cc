// Draws training sequences, and lays out validation sequences.

#include "models/data/batches.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <random>

namespace kiln {

PassOrder shuffledOrder(int64_t tokens, int64_t context, uint64_t seed) {
  // One sequence fewer if the shift could push the last one past the end.
  const int64_t perPass = std::max<int64_t>(1, (tokens - 1 - (context - 1)) / context);
  return {perPass, [=, random = Random(seed, Stream::batches)](int64_t pass) {
            const uint64_t counter = static_cast<uint64_t>(pass) << 32;
            const int64_t room = tokens - 1 - perPass * context;
            const int64_t shift = random.below(room + 1, counter);
            std::vector<int64_t> begins(perPass);
            for (int64_t i = 0; i < perPass; ++i)
              begins[i] = shift + i * context;
            for (int64_t i = perPass - 1; i > 0; --i) // Fisher-Yates shuffle
              std::swap(begins[i], begins[random.below(i + 1, counter + i)]);
            return begins;
          }};
}

namespace {
/// llm.c's random number generator, whose state continues from epoch to epoch, and the order of files, which each epoch
/// shuffles again.
class LlmcPasses {
public:
  LlmcPasses(std::vector<int64_t> ends, int64_t context, int64_t rows)
      : ends(std::move(ends)), context(context), rows(rows) {}

  std::vector<int64_t> draw(int64_t pass) {
    if (pass < next) // restart from the first epoch
      *this = LlmcPasses(ends, context, rows);
    std::vector<int64_t> begins;
    while (next <= pass)
      begins = drawNext();
    return begins;
  }
  int64_t countWindows(size_t file) const { return (ends[file] - findBegin(file) - 1) / (rows * context); }

private:
  int64_t findBegin(size_t file) const { return file == 0 ? 0 : ends[file - 1]; }

  void shuffle(std::vector<int64_t> &order) {
    for (int64_t i = std::ssize(order) - 1; i > 0; --i)
      std::swap(order[i], order[random() % static_cast<uint64_t>(i + 1)]);
  }

  std::vector<int64_t> drawNext() {
    if (files.empty()) {
      files.resize(ends.size());
      std::iota(files.begin(), files.end(), int64_t{0});
    }
    shuffle(files);
    std::vector<int64_t> begins;
    for (const int64_t file : files) {
      std::vector<int64_t> windows(countWindows(file));
      std::iota(windows.begin(), windows.end(), int64_t{0});
      shuffle(windows);
      for (const int64_t window : windows)
        for (int64_t row = 0; row < rows; ++row)
          begins.push_back(findBegin(file) + (window * rows + row) * context);
    }
    ++next;
    return begins;
  }

  std::vector<int64_t> ends;
  int64_t context, rows;
  std::mt19937 random{42};
  std::vector<int64_t> files;
  int64_t next = 0; // the epoch of the generator's state
};
} // namespace

PassOrder llmcOrder(std::vector<int64_t> ends, int64_t context, int64_t rows) {
  const auto passes = std::make_shared<LlmcPasses>(ends, context, rows);
  int64_t windows = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (passes->countWindows(i) == 0)
      throw Error(fmt::format("expected at least {} tokens in each file for {} sequences of {}, but file {} of {} has "
                              "{}",
                              rows * context + 1, rows, context, i + 1, ends.size(),
                              ends[i] - (i == 0 ? 0 : ends[i - 1])));
    windows += passes->countWindows(i);
  }
  return {windows * rows, [passes](int64_t pass) { return passes->draw(pass); }};
}

TrainBatches::TrainBatches(std::shared_ptr<const TokenStream> given, int64_t context, PassOrder passes)
    : text(std::move(given)), context(context), order(std::move(passes)) {}

Batch TrainBatches::sequences(int64_t first, int64_t count) {
  Batch batch;
  batch.tokens.reserve(count * context);
  batch.targets.reserve(count * context);
  std::vector<int32_t> sequence(context + 1);
  for (int64_t n = first; n < first + count; ++n) {
    if (n / order.sequences != drawn) {
      drawn = n / order.sequences;
      begins = order.draw(drawn);
    }
    text->read(begins[n % order.sequences], context + 1, sequence.data());
    batch.tokens.insert(batch.tokens.end(), sequence.begin(), sequence.end() - 1);
    batch.targets.insert(batch.targets.end(), sequence.begin() + 1, sequence.end());
  }
  return batch;
}

int64_t validationSequences(int64_t tokens, int64_t context) { return (tokens - 1 + context - 1) / context; }

Batch validationBatch(const TokenStream &text, int64_t context, const std::vector<int64_t> &sequences, int64_t count) {
  Batch batch;
  batch.tokens.assign(count * context, 0);
  batch.targets.assign(count * context, ignoredTarget);
  for (int64_t row = 0; row < std::ssize(sequences); ++row) {
    const int64_t begin = sequences[row] * context, there = std::min(text.size() - 1 - begin, context);
    text.read(begin, there, batch.tokens.data() + row * context);
    text.read(begin + 1, there, batch.targets.data() + row * context);
  }
  return batch;
}

} // namespace kiln
