// Writes and reads records of compiled code.

#include "runtime/Record.h"

#include "dialect/dsl/Types.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"

#include <cstdint>
#include <cstring>

namespace kiln {

/// The last character is the version of this form.
static constexpr std::string_view magic = "KILNKRN4";

namespace {
/// A record's header; the content follows.
struct Header {
  char magic[8] = {};
  char key[64] = {};
  char hash[64] = {}; // of key and content
  uint64_t length = 0;
};
} // namespace
static_assert(sizeof(Header) == Record::headerBytes);

std::string digestOf(std::string_view text) {
  llvm::BLAKE3 hasher;
  hasher.update(llvm::StringRef(text.data(), text.size()));
  return llvm::toHex(hasher.final(), /*LowerCase=*/true);
}

static Header makeHeader(std::string_view key, std::string_view content) {
  Header header;
  llvm::BLAKE3 hasher;
  hasher.update(llvm::StringRef(key.data(), key.size()));
  hasher.update(llvm::StringRef(content.data(), content.size()));
  const std::string hash = llvm::toHex(hasher.final(), /*LowerCase=*/true);
  std::memcpy(header.magic, magic.data(), sizeof header.magic);
  std::memcpy(header.key, key.data(), sizeof header.key);
  std::memcpy(header.hash, hash.data(), sizeof header.hash);
  header.length = content.size();
  return header;
}

std::string makeRecord(std::string_view key, std::string_view content) {
  const Header header = makeHeader(key, content);
  std::string bytes(reinterpret_cast<const char *>(&header), sizeof header);
  return bytes.append(content);
}

Record takeRecord(std::string_view &bytes) {
  const std::string_view begin = bytes.substr(0, magic.size()), form = magic.substr(0, magic.size() - 1);
  if (begin.substr(0, form.size()) != form.substr(0, begin.size()))
    throw Error("it has another form");
  if (bytes.size() < sizeof(Header))
    throw Error("it ends within a header");
  if (begin != magic)
    throw Error("it was made by another version of Kiln");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.remove_prefix(sizeof header);
  if (header.length > bytes.size())
    throw Error("it ends within a kernel");
  const Record record{{bytes.data() - sizeof header + offsetof(Header, key), sizeof header.key},
                      bytes.substr(0, header.length)};
  const Header expected = makeHeader(record.key, record.content);
  if (std::memcmp(&header, &expected, sizeof header) != 0)
    throw Error("it is damaged");
  bytes.remove_prefix(header.length);
  return record;
}

} // namespace kiln
