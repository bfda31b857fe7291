// Token files in llm.c's format: 256 numbers of 32 bits (20240520, 1, number of tokens), then the tokens in 16 bits
// each. For larger vocabularies the numbers are 20240801 and 7, and tokens have 32 bits. Several files, in the order of
// their names, form one stream.

#pragma once

#include "models/data/batches.h"

#include <span>
#include <string>

namespace kiln {

class TokenShards : public TokenStream {
public:
  /// Opens the files of a pattern such as `data/train_*.bin`. Throws Error if there is none, one is incomplete or of
  /// another form, or one of its first tokens is not below `vocab`.
  TokenShards(const std::string &pattern, int64_t vocab);

  int64_t size() const override { return ends.empty() ? 0 : ends.back(); }
  /// End of each file, in tokens of the stream.
  const std::vector<int64_t> &fileEnds() const { return ends; }
  /// Throws Error if a file has changed, cannot be read, or has a token that is not below `vocab`.
  void read(int64_t begin, int64_t count, int32_t *to) const override;
  /// Bytes of all files, and a hash of their order, sizes and samples of their contents.
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

/// Whether `path` names token files, by its ending.
bool namesShards(const std::string &path);
/// Whether a file of these bytes is a token file. Its name does not matter.
bool beginsAsShard(const std::vector<uint8_t> &bytes);

/// Writes one token file. Tokens take 16 bits if `vocab` is at most 65536.
void writeShard(const std::string &path, std::span<const int32_t> tokens, int64_t vocab);

} // namespace kiln
