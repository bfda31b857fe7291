// A long sequence of tokens from which batches are cut: bytes of a text, tokens in memory, or token files.

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace kiln {

class TokenStream {
public:
  virtual ~TokenStream() = default;
  virtual int64_t size() const = 0;
  /// Copies tokens `begin` … `begin + count`, which must exist.
  virtual void read(int64_t begin, int64_t count, int32_t *to) const = 0;
};

/// Numbers in memory.
template <class Number> class MemoryTokens : public TokenStream {
public:
  explicit MemoryTokens(std::vector<Number> tokens) : tokens(std::move(tokens)) {}
  int64_t size() const override { return std::ssize(tokens); }
  void read(int64_t begin, int64_t count, int32_t *to) const override {
    std::copy_n(tokens.begin() + begin, count, to);
  }

private:
  const std::vector<Number> tokens;
};

/// A part of another stream.
class StreamPart : public TokenStream {
public:
  StreamPart(std::shared_ptr<const TokenStream> whole, int64_t begin, int64_t count)
      : whole(std::move(whole)), first(begin), count(count) {}
  int64_t size() const override { return count; }
  void read(int64_t begin, int64_t some, int32_t *to) const override { whole->read(first + begin, some, to); }

private:
  const std::shared_ptr<const TokenStream> whole;
  const int64_t first, count;
};

} // namespace kiln
