// Reads token shards.

#include "models/data/shards.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "runtime/Files.h"

#include <cstring>
#include <fmt/format.h>
#include <glob.h>

namespace kiln {

static constexpr int64_t headerBytes = 256 * sizeof(int32_t);
static constexpr int32_t narrowMagic = 20240520, narrowVersion = 1, wideMagic = 20240801, wideVersion = 7;

/// The files that match a pattern, sorted by name.
static std::vector<std::string> findFiles(const std::string &pattern) {
  glob_t found = {};
  const int result = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (files.empty())
    throw Error(fmt::format("no file of tokens is named '{}'", pattern));
  return files;
}

/// Tokens of each file that are checked before a run begins; the others are checked when they are read.
static constexpr int64_t lookedAt = int64_t{1} << 20;

TokenShards::TokenShards(const std::string &pattern, int64_t vocab) : vocab(vocab) {
  for (const std::string &path : findFiles(pattern)) {
    Shard &shard = shards.emplace_back(Shard{path});
    const InputFile file(path);
    shard.bytes = file.size();
    int32_t header[3] = {};
    if (shard.bytes < headerBytes)
      throw Error(fmt::format("expected a header of {} bytes in '{}', but it has {}; a text has a name that does not "
                              "end in .bin",
                              headerBytes, path, shard.bytes));
    file.read(0, header, sizeof(header));
    const bool isNarrow = header[0] == narrowMagic && header[1] == narrowVersion;
    if (!isNarrow && !(header[0] == wideMagic && header[1] == wideVersion))
      throw Error(fmt::format("expected tokens ({}, version {}; or {}, version {}) in '{}', but got {}, version {}; a "
                              "text has a name that does not end in .bin",
                              narrowMagic, narrowVersion, wideMagic, wideVersion, path, header[0], header[1]));
    shard.width = isNarrow ? 2 : 4;
    shard.tokens = header[2];
    if (shard.tokens < 0 || shard.bytes != headerBytes + shard.tokens * shard.width)
      throw Error(fmt::format("expected {} tokens in {} bytes of '{}', but it has {}", header[2],
                              headerBytes + shard.tokens * shard.width, path, shard.bytes));
    ends.push_back(size() + shard.tokens);
    std::vector<int32_t> first(std::min(shard.tokens, lookedAt));
    read(shard, 0, std::ssize(first), first.data());
  }
}

/// A file that was there when the run began. It is not mapped, because a truncated file or a disk error would then kill
/// the process.
static InputFile reopened(const std::string &path) try { return InputFile(path); } catch (const Error &error) {
  throw Error(error.what(), Fault::device);
}

void TokenShards::read(const Shard &shard, int64_t begin, int64_t count, int32_t *to) const {
  const InputFile file = reopened(shard.path);
  if (file.size() != shard.bytes)
    throw Error(fmt::format("expected '{}' to have {} bytes, as when the run began, but it has {}", shard.path,
                            shard.bytes, file.size()),
                Fault::device);
  const int64_t at = headerBytes + begin * shard.width;
  if (shard.width == 4) {
    file.read(at, to, count * 4);
  } else {
    std::vector<uint16_t> narrow(count);
    file.read(at, narrow.data(), count * 2);
    std::copy(narrow.begin(), narrow.end(), to);
  }
  for (int64_t i = 0; i < count; ++i)
    if (const auto token = static_cast<uint32_t>(to[i]); token >= vocab)
      throw Error(fmt::format("expected tokens below {} in '{}', but got {}", vocab, shard.path, token));
}

void TokenShards::read(int64_t begin, int64_t count, int32_t *to) const {
  size_t i = std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin();
  while (count > 0) {
    const Shard &shard = shards[i];
    const int64_t at = begin - (ends[i] - shard.tokens), some = std::min(count, shard.tokens - at);
    read(shard, at, some, to);
    to += some;
    begin += some;
    count -= some;
    ++i;
  }
}

int64_t TokenShards::bytes() const {
  int64_t all = 0;
  for (const Shard &shard : shards)
    all += shard.bytes;
  return all;
}

uint64_t TokenShards::hash() const {
  static constexpr int64_t samples = 1024, sampleBytes = 4096;
  uint64_t hash = fnv1a("");
  for (const Shard &shard : shards) {
    hash = fnv1a({reinterpret_cast<const char *>(&shard.bytes), sizeof(shard.bytes)}, hash);
    const int64_t stride = std::max(sampleBytes, shard.bytes / samples);
    const InputFile file = reopened(shard.path);
    for (int64_t at = 0; at < shard.bytes; at += stride) {
      std::string sample(std::min(sampleBytes, shard.bytes - at), '\0');
      file.read(at, sample.data(), std::ssize(sample));
      hash = fnv1a(sample, hash);
    }
  }
  return hash;
}

bool namesShards(const std::string &path) { return path.ends_with(".bin"); }

bool beginsAsShard(const std::vector<uint8_t> &bytes) {
  int32_t header[2] = {};
  if (std::ssize(bytes) < headerBytes)
    return false;
  std::memcpy(header, bytes.data(), sizeof(header));
  return (header[0] == narrowMagic && header[1] == narrowVersion) ||
         (header[0] == wideMagic && header[1] == wideVersion);
}

void writeShard(const std::string &path, std::span<const int32_t> tokens, int64_t vocab) {
  const bool isNarrow = vocab <= 65536;
  if (std::ssize(tokens) > std::numeric_limits<int32_t>::max())
    throw Error(fmt::format("expected at most 2147483647 tokens for a shard, but got {}", tokens.size()));
  std::vector<int32_t> header(256);
  header[0] = isNarrow ? narrowMagic : wideMagic;
  header[1] = isNarrow ? narrowVersion : wideVersion;
  header[2] = static_cast<int32_t>(tokens.size());
  std::vector<uint16_t> narrow;
  if (isNarrow)
    narrow.assign(tokens.begin(), tokens.end());
  replaceFile(path, std::vector<Bytes>{{header.data(), headerBytes},
                                       isNarrow ? Bytes{narrow.data(), std::ssize(narrow) * 2}
                                                : Bytes{tokens.data(), std::ssize(tokens) * 4}});
}

} // namespace kiln
