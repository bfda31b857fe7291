// Mapping shards into memory.

#include "models/data/shards.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

static constexpr int64_t headerBytes = 256 * sizeof(int32_t);
static constexpr int32_t narrowMagic = 20240520, narrowVersion = 1, wideMagic = 20240801, wideVersion = 7;

/// The files of a pattern, sorted by name.
static std::vector<std::string> filesOf(const std::string &pattern) {
  glob_t found = {};
  const int result = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  ::globfree(&found);
  if (files.empty())
    throw Error(fmt::format("expected files of tokens, but none is named '{}'", pattern));
  return files;
}

/// The largest of so many numbers, as unsigned ones.
template <class Number> static uint32_t largest(const char *from, int64_t count) {
  const auto *const numbers = reinterpret_cast<const Number *>(from);
  Number most = 0;
  for (int64_t i = 0; i < count; ++i)
    most = std::max(most, numbers[i]);
  return most;
}

/// Maps a file, which may be empty.
static std::shared_ptr<const char> mapped(const std::string &path, int64_t &bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  const bool opened = file >= 0 && ::fstat(file, &status) == 0;
  if (opened && !S_ISREG(status.st_mode)) {
    ::close(file);
    throw Error(fmt::format("expected a file of tokens, but '{}' is none", path));
  }
  bytes = status.st_size;
  void *memory = opened && bytes > 0 ? ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0) : nullptr;
  const int reason = errno;
  if (file >= 0)
    ::close(file);
  if (!opened || memory == MAP_FAILED)
    throw Error(fmt::format("cannot read '{}': {}", path, std::strerror(reason)), Fault::device);
  return {static_cast<const char *>(memory), [bytes](const char *from) {
            if (from)
              ::munmap(const_cast<char *>(from), bytes);
          }};
}

TokenShards::TokenShards(const std::string &pattern, int64_t vocab) {
  const std::vector<std::string> files = filesOf(pattern);
  shards.reserve(files.size());
  for (const std::string &path : files) {
    Shard &shard = shards.emplace_back(Shard{path});
    shard.memory = mapped(path, shard.bytes);
    int32_t header[3] = {};
    if (shard.bytes < headerBytes)
      throw Error(fmt::format("expected a header of {} bytes in '{}', but it has {}", headerBytes, path, shard.bytes));
    std::memcpy(header, shard.memory.get(), sizeof(header));
    const bool isNarrow = header[0] == narrowMagic && header[1] == narrowVersion;
    if (!isNarrow && !(header[0] == wideMagic && header[1] == wideVersion))
      throw Error(fmt::format("expected tokens ({}, version {}; or {}, version {}) in '{}', but got {}, version {}",
                              narrowMagic, narrowVersion, wideMagic, wideVersion, path, header[0], header[1]));
    shard.width = isNarrow ? 2 : 4;
    shard.tokens = header[2];
    if (shard.tokens < 0 || shard.bytes != headerBytes + shard.tokens * shard.width)
      throw Error(fmt::format("expected {} tokens in {} bytes of '{}', but it has {}", header[2],
                              headerBytes + shard.tokens * shard.width, path, shard.bytes));
    const char *const tokens = shard.memory.get() + headerBytes;
    const uint32_t most = isNarrow ? largest<uint16_t>(tokens, shard.tokens) : largest<uint32_t>(tokens, shard.tokens);
    if (most >= vocab)
      throw Error(fmt::format("expected tokens below {} in '{}', but got {}", vocab, path, most));
    ends.push_back(size() + shard.tokens);
  }
}

void TokenShards::read(int64_t begin, int64_t count, int32_t *to) const {
  size_t i = std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin();
  while (count > 0) {
    const Shard &shard = shards[i];
    const int64_t at = begin - (ends[i] - shard.tokens), some = std::min(count, shard.tokens - at);
    const char *const from = shard.memory.get() + headerBytes + at * shard.width;
    if (shard.width == 2)
      std::copy_n(reinterpret_cast<const uint16_t *>(from), some, to);
    else
      std::copy_n(reinterpret_cast<const int32_t *>(from), some, to);
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
    for (int64_t at = 0; at < shard.bytes; at += stride)
      add(shard.memory.get() + at, std::min(sampleBytes, shard.bytes - at));
  }
  return hash;
}

bool namesShards(const std::string &path) { return path.ends_with(".bin"); }

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
