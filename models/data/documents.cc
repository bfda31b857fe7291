// Finds documents, keeps their places in a file, and packs them into rows.

#include "models/data/documents.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "runtime/Files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <numeric>

namespace kiln {

//===-- Places of documents -------------------------------------------------------------------------------------===//
// Finds document marks, and caches them in a file. It has seven 64-bit numbers (magic, version, begin and end mark,
// size and hash of the stream, number of documents), then two for each document.

std::vector<DocumentPlace> findDocuments(const TokenStream &stream, const DocumentMarks &marks,
                                         const std::string &where) {
  constexpr int64_t atOnce = int64_t{1} << 16;
  std::vector<DocumentPlace> places;
  std::vector<int32_t> some(atOnce);
  std::optional<int64_t> begin; // of the current document
  int32_t last = -1;            // the previous token
  // The document's last token predicts the token at `next`, unless it is an end mark.
  const auto close = [&](int64_t next) {
    if (begin && next - *begin - (last == marks.end ? 1 : 0) > 0)
      places.push_back({*begin, next - *begin - (last == marks.end ? 1 : 0)});
  };
  for (int64_t at = 0; at < stream.size(); at += atOnce) {
    const int64_t count = std::min(atOnce, stream.size() - at);
    stream.read(at, count, some.data());
    for (int64_t i = 0; i < count; ++i) {
      if (some[i] == marks.begin) {
        close(at + i);
        begin = at + i;
      }
      last = some[i];
    }
  }
  last = -1;
  close(stream.size() - 1); // the stream's last token can only be a target
  if (places.empty())
    throw Error(fmt::format("expected documents in {}, each of which begins with token {}, but there are none", where,
                            marks.begin));
  return places;
}

using Header = std::array<int64_t, 7>;
static constexpr int64_t magic = 0x73636f646e6c696b, version = 1; // "kilndocs"

static Header makeHeader(const TokenStream &stream, const DocumentMarks &marks, uint64_t hash, int64_t documents) {
  return {magic, version, marks.begin, marks.end.value_or(-1), stream.size(), static_cast<int64_t>(hash), documents};
}

/// The content of the file, if it belongs to this stream and has the right length.
static std::optional<std::vector<DocumentPlace>> readIndex(const std::string &index, const TokenStream &stream,
                                                           const DocumentMarks &marks, uint64_t hash) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(index, ignored))
    return {};
  const InputFile file(index);
  Header header;
  if (file.size() < static_cast<int64_t>(sizeof(header)))
    return {};
  file.read(0, header.data(), sizeof(header));
  const int64_t documents = (file.size() - static_cast<int64_t>(sizeof(header))) / sizeof(DocumentPlace);
  if (header != makeHeader(stream, marks, hash, documents))
    return {};
  std::vector<DocumentPlace> places(documents);
  file.read(sizeof(header), places.data(), documents * static_cast<int64_t>(sizeof(DocumentPlace)));
  for (const DocumentPlace &place : places)
    if (place.begin < 0 || place.targets < 1 || place.begin >= stream.size() - place.targets)
      return {};
  return places;
}

std::vector<DocumentPlace> locateDocuments(const TokenStream &stream, const DocumentMarks &marks,
                                           const std::string &where, const std::string &index, uint64_t hash) {
  if (std::optional<std::vector<DocumentPlace>> known = readIndex(index, stream, marks, hash))
    return std::move(*known);
  std::vector<DocumentPlace> places = findDocuments(stream, marks, where);
  const Header header = makeHeader(stream, marks, hash, std::ssize(places));
  replaceFile(index, std::vector<Bytes>{{header.data(), sizeof(header)},
                                        {places.data(), std::ssize(places) * int64_t{sizeof(DocumentPlace)}}});
  return places;
}

//===-- Rows of documents ---------------------------------------------------------------------------------------===//

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
