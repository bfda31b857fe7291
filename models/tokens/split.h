// Cutting a text into pieces by an expression, as GPT-2's tokenizer does before it merges anything.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class Splitter {
public:
  /// An expression of PCRE2 over Unicode: classes such as \p{L} and \s are Unicode's. Throws Error for one that is
  /// none. The empty expression leaves a text in one piece.
  explicit Splitter(const std::string &expression);

  /// Calls `take` for the pieces of `text` in order; together they are all of it. What the expression does not match is
  /// a piece, and so is a run of bytes that is no UTF-8. Any number of threads may split.
  void split(std::string_view text, const std::function<void(std::string_view)> &take) const;

  /// Whether the expression matches anywhere in a text that is UTF-8.
  bool finds(std::string_view text) const;

private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled; // nothing for the empty expression
};

/// Bytes from `begin` on that are UTF-8, up to the first that is not.
size_t validUtf8(std::string_view text, size_t begin);

/// The text in parts of about `bytes`, each of which splits as it does in the whole. They end after a line of visible
/// letters, before another one: each of namedSplits() ends a piece there. Where there is no such place they are longer.
std::vector<std::string_view> partsAtLines(std::string_view text, size_t bytes);

} // namespace kiln
