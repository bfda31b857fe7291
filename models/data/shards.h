// Tokens in files as llm.c has them: 256 numbers of 32 bits (20240520, 1, how many tokens), then the tokens, each in 16
// bits; or 20240801, 7 and tokens in 32 bits, for vocabularies that 16 do not hold. Several files, in the order of
// their names, are one stream.

#pragma once

#include "models/data/token_stream.h"

#include <span>
#include <string>

namespace kiln {

class TokenShards : public TokenStream {
public:
  /// Looks at the files of a pattern such as `data/train_*.bin`. Throws Error where there is none, one is torn or
  /// something else, or has a token among its first that is not below `vocab`.
  TokenShards(const std::string &pattern, int64_t vocab);

  int64_t size() const override { return ends.empty() ? 0 : ends.back(); }
  /// Tokens up to the end of each file.
  const std::vector<int64_t> &fileEnds() const { return ends; }
  /// Throws Error where a file has become another, cannot be read, or has a token that is not below `vocab`.
  void read(int64_t begin, int64_t count, int32_t *to) const override;
  /// Bytes of all files, and a hash of their names' order, their sizes and samples of what is in them.
  int64_t bytes() const;
  uint64_t hash() const;

private:
  struct Shard {
    std::string path;
    int64_t bytes = 0, tokens = 0;
    int width = 2; // bytes of a token
  };
  void read(const Shard &shard, int64_t begin, int64_t count, int32_t *to) const;

  const int64_t vocab;
  std::vector<Shard> shards;
  std::vector<int64_t> ends;
};

/// Whether `path` names such files, by its ending.
bool namesShards(const std::string &path);
/// Whether a file of these bytes is one of tokens, whatever its name.
bool beginsAsShard(const std::vector<uint8_t> &bytes);

/// Writes one such file. Tokens take 16 bits where `vocab` is at most 65536.
void writeShard(const std::string &path, std::span<const int32_t> tokens, int64_t vocab);

} // namespace kiln
