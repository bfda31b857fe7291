// Finds document marks, and caches them in a file. It has seven 64-bit numbers (magic, version, begin and end mark,
// size and hash of the stream, number of documents), then two for each document.

#include "models/data/document_index.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "runtime/Files.h"

#include <array>
#include <filesystem>
#include <fmt/format.h>

namespace kiln {

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

static Header headerOf(const TokenStream &stream, const DocumentMarks &marks, uint64_t hash, int64_t documents) {
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
  if (header != headerOf(stream, marks, hash, documents))
    return {};
  std::vector<DocumentPlace> places(documents);
  file.read(sizeof(header), places.data(), documents * static_cast<int64_t>(sizeof(DocumentPlace)));
  for (const DocumentPlace &place : places)
    if (place.begin < 0 || place.targets < 1 || place.begin >= stream.size() - place.targets)
      return {};
  return places;
}

std::vector<DocumentPlace> documentsOf(const TokenStream &stream, const DocumentMarks &marks, const std::string &where,
                                       const std::string &index, uint64_t hash) {
  if (std::optional<std::vector<DocumentPlace>> known = readIndex(index, stream, marks, hash))
    return std::move(*known);
  std::vector<DocumentPlace> places = findDocuments(stream, marks, where);
  const Header header = headerOf(stream, marks, hash, std::ssize(places));
  const std::string aside = index + ".partial";
  writeSynced(aside, {{header.data(), sizeof(header)},
                      {places.data(), std::ssize(places) * static_cast<int64_t>(sizeof(DocumentPlace))}});
  std::filesystem::rename(aside, index);
  return places;
}

} // namespace kiln
