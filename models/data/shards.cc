// Reads token shards.

#include "models/data/shards.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

static constexpr int64_t headerBytes = 256 * sizeof(int32_t);
static constexpr int32_t narrowMagic = 20240520, narrowVersion = 1, wideMagic = 20240801, wideVersion = 7;

/// The files that match a pattern, sorted by name.
static std::vector<std::string> filesOf(const std::string &pattern) {
  glob_t found = {};
  const int result = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (files.empty())
    throw Error(fmt::format("expected files of tokens, but none is named '{}'", pattern));
  return files;
}

/// Tokens of each file that are checked before a run begins; the others are checked when they are read.
static constexpr int64_t lookedAt = int64_t{1} << 20;

namespace {
/// An open token file. It is not mapped, because a truncated file or a disk error would then kill the process.
class TokenFile {
public:
  explicit TokenFile(const std::string &path) : path(path), file(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status = {};
    if (file < 0 || ::fstat(file, &status) != 0)
      fail();
    if (!S_ISREG(status.st_mode)) {
      ::close(file);
      throw Error(fmt::format("expected a token file, but '{}' is not a regular file", path));
    }
    bytes = status.st_size;
  }
  TokenFile(const TokenFile &) = delete;
  ~TokenFile() { ::close(file); }

  void read(int64_t at, int64_t count, char *to) const {
    while (count > 0) {
      const ssize_t got = ::pread(file, to, count, at);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        fail();
      if (got == 0)
        throw Error(fmt::format("expected {} bytes more at byte {} of '{}', but the file ends: it has become shorter",
                                count, at, path),
                    Fault::device);
      at += got;
      to += got;
      count -= got;
    }
  }

  int64_t bytes = 0;

private:
  [[noreturn]] void fail() const {
    throw Error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)), Fault::device);
  }
  const std::string path;
  const int file;
};
} // namespace

TokenShards::TokenShards(const std::string &pattern, int64_t vocab) : vocab(vocab) {
  for (const std::string &path : filesOf(pattern)) {
    Shard &shard = shards.emplace_back(Shard{path});
    const TokenFile file(path);
    shard.bytes = file.bytes;
    int32_t header[3] = {};
    if (shard.bytes < headerBytes)
      throw Error(fmt::format("expected a header of {} bytes in '{}', but it has {}; a text has a name that does not "
                              "end in .bin",
                              headerBytes, path, shard.bytes));
    file.read(0, sizeof(header), reinterpret_cast<char *>(header));
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

void TokenShards::read(const Shard &shard, int64_t begin, int64_t count, int32_t *to) const {
  const TokenFile file(shard.path);
  if (file.bytes != shard.bytes)
    throw Error(fmt::format("expected '{}' to have {} bytes, as when the run began, but it has {}", shard.path,
                            shard.bytes, file.bytes),
                Fault::device);
  const int64_t at = headerBytes + begin * shard.width;
  if (shard.width == 4) {
    file.read(at, count * 4, reinterpret_cast<char *>(to));
  } else {
    std::vector<uint16_t> narrow(count);
    file.read(at, count * 2, reinterpret_cast<char *>(narrow.data()));
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
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](const char *from, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      hash = (hash ^ static_cast<uint8_t>(from[i])) * 0x100000001b3;
  };
  for (const Shard &shard : shards) {
    add(reinterpret_cast<const char *>(&shard.bytes), sizeof(shard.bytes));
    const int64_t stride = std::max(sampleBytes, shard.bytes / samples);
    const TokenFile file(shard.path);
    std::vector<char> sample(sampleBytes);
    for (int64_t at = 0; at < shard.bytes; at += stride) {
      const int64_t count = std::min(sampleBytes, shard.bytes - at);
      file.read(at, count, sample.data());
      add(sample.data(), count);
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
  const Bytes body =
      isNarrow ? Bytes{narrow.data(), std::ssize(narrow) * 2} : Bytes{tokens.data(), std::ssize(tokens) * 4};
  const std::string aside = path + ".part";
  writeSynced(aside, {{header.data(), headerBytes}, body});
  if (std::rename(aside.c_str(), path.c_str()) != 0)
    throw Error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)), Fault::device);
}

} // namespace kiln
