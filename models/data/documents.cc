// Packs documents into rows, and shuffles the rows for each epoch.

#include "models/data/documents.h"

#include <algorithm>
#include <numeric>

namespace kiln {

//===-- Rows ----------------------------------------------------------------------------------------------------===//

Documents::Documents(std::shared_ptr<const TokenStream> given, const std::vector<DocumentPlace> &places,
                     int64_t context, const Packing &packing)
    : stream(std::move(given)), context(context), isPacked(packing.share > 0) {
  std::vector<int64_t> order(places.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  if (packing.seed)
    shuffle(order, std::ssize(places), Random(*packing.seed, Stream::packing), 0);
  place(places, order, packing.share);
}

void Documents::place(const std::vector<DocumentPlace> &places, const std::vector<int64_t> &order, double share) {
  const double enough = share * static_cast<double>(context);
  int64_t filled = context; // tokens in the last row
  for (const int64_t number : order)
    for (DocumentPlace left = places[number]; left.targets > 0;) {
      if (filled == context || !(static_cast<double>(filled) < enough)) {
        firstPart.push_back(std::ssize(parts));
        filled = 0;
      }
      const int64_t taken = std::min(left.targets, context - filled);
      parts.push_back({left.begin, taken});
      filled += taken;
      left = {left.begin + taken, left.targets - taken};
    }
  firstPart.push_back(std::ssize(parts));
}

int64_t Documents::targets(int64_t sequence) const {
  int64_t all = 0;
  for (int64_t i = firstPart[sequence]; i < firstPart[sequence + 1]; ++i)
    all += parts[i].targets;
  return all;
}

void Documents::read(int64_t sequence, Batch &batch, int64_t row) const {
  int64_t filled = 0;
  for (int64_t part = firstPart[sequence]; part < firstPart[sequence + 1]; ++part) {
    const auto &[begin, count] = parts[part];
    const int64_t to = row * context + filled;
    stream->read(begin, count, batch.tokens.data() + to);
    stream->read(begin + 1, count, batch.targets.data() + to);
    if (isPacked)
      for (int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<int32_t>(filled + i), first = static_cast<int32_t>(filled);
        batch.positions[to + i] = static_cast<int32_t>(i);
        batch.ranges[2 * (to + i)] = first;
        batch.ranges[2 * (to + i) + 1] = at + 1;
        batch.queryRanges[2 * (to + i)] = at;
        batch.queryRanges[2 * (to + i) + 1] = static_cast<int32_t>(filled + count);
      }
    filled += count;
  }
  if (isPacked) // padding sees nothing and is not seen: its empty ranges keep the ranges nondecreasing
    for (int64_t i = 2 * (row * context + filled); i < 2 * (row + 1) * context; ++i)
      batch.ranges[i] = batch.queryRanges[i] = static_cast<int32_t>(filled);
}

Batch Documents::padding(int64_t rows) const {
  Batch batch = {.tokens = std::vector<int32_t>(rows * context, 0),
                 .targets = std::vector<int32_t>(rows * context, ignoredTarget)};
  if (isPacked) {
    batch.positions.assign(rows * context, 0);
    batch.ranges.assign(2 * rows * context, 0);
    batch.queryRanges.assign(2 * rows * context, 0);
  }
  return batch;
}

//===-- Passes --------------------------------------------------------------------------------------------------===//

DocumentBatches::DocumentBatches(std::shared_ptr<const Documents> given, uint64_t seed)
    : documents(std::move(given)), random(seed, Stream::batches) {}

int64_t DocumentBatches::at(int64_t n) {
  const int64_t count = documents->sequences(), pass = n / count;
  if (pass != drawn) {
    shuffle(order, count, random, static_cast<uint64_t>(pass) << 32);
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
