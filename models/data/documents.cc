// Finding marks, and drawing passes.

#include "models/data/documents.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace kiln {

Documents::Documents(std::shared_ptr<const TokenStream> given, int32_t mark, int64_t context, const std::string &path)
    : stream(std::move(given)), context(context) {
  constexpr int64_t atOnce = int64_t{1} << 16;
  std::vector<int64_t> marks;
  std::vector<int32_t> some(atOnce);
  for (int64_t at = 0; at < stream->size(); at += atOnce) {
    const int64_t count = std::min(atOnce, stream->size() - at);
    stream->read(at, count, some.data());
    for (int64_t i = 0; i < count; ++i)
      if (some[i] == mark)
        marks.push_back(at + i);
  }
  marks.push_back(stream->size() - 1); // the last token is a target at most
  for (size_t i = 0; i + 1 < marks.size(); ++i)
    for (int64_t begin = marks[i]; begin < marks[i + 1]; begin += context) {
      begins.push_back(begin);
      lengths.push_back(static_cast<int32_t>(std::min(context, marks[i + 1] - begin)));
    }
  if (begins.empty())
    throw Error(
        fmt::format("expected documents in '{}', each of which begins with token {}, but there are none", path, mark));
}

void Documents::read(int64_t sequence, Batch &batch, int64_t row) const {
  const int64_t count = lengths[sequence];
  stream->read(begins[sequence], count, batch.tokens.data() + row * context);
  stream->read(begins[sequence] + 1, count, batch.targets.data() + row * context);
}

Batch Documents::padding(int64_t rows) const {
  return {std::vector<int32_t>(rows * context, 0), std::vector<int32_t>(rows * context, ignoredTarget)};
}

DocumentBatches::DocumentBatches(std::shared_ptr<const Documents> given, uint64_t seed)
    : documents(std::move(given)), random(seed, Stream::batches) {}

int64_t DocumentBatches::at(int64_t n) {
  const int64_t count = documents->sequences(), pass = n / count;
  if (pass != drawn) {
    order.resize(count);
    std::iota(order.begin(), order.end(), int64_t{0});
    const uint64_t counter = static_cast<uint64_t>(pass) << 32;
    for (int64_t i = count - 1; i > 0; --i) // Fisher and Yates
      std::swap(order[i], order[random.below(i + 1, counter + i)]);
    drawn = pass;
  }
  return order[n % count];
}

Batch DocumentBatches::sequences(int64_t first, int64_t count) {
  Batch batch = documents->padding(count);
  for (int64_t i = 0; i < count; ++i)
    documents->read(at(first + i), batch, i);
  return batch;
}

int64_t DocumentBatches::targets(int64_t first, int64_t count) {
  int64_t all = 0;
  for (int64_t i = 0; i < count; ++i)
    all += documents->targets(at(first + i));
  return all;
}

} // namespace kiln
