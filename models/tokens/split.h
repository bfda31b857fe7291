// Cuts a text into pieces by a regular expression, as GPT-2's tokenizer does before merging.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

class Splitter {
public:
  /// A PCRE2 expression over Unicode: classes such as \p{L} and \s are Unicode's. Throws Error for an invalid one. The
  /// empty expression leaves a text in one piece.
  explicit Splitter(const std::string &expression);

  /// Calls `take` for the pieces of `text` in order; together they are all of it. Text between matches is a piece, and
  /// so is a run of bytes that is not UTF-8. Thread-safe.
  void split(std::string_view text, const std::function<void(std::string_view)> &take) const;

  /// Whether the expression matches anywhere in a UTF-8 text.
  bool finds(std::string_view text) const;

private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled; // null for the empty expression
};

/// Number of valid UTF-8 bytes from `begin` on.
size_t validUtf8(std::string_view text, size_t begin);

/// The text in parts of about `bytes`, which split as the whole does. They end after a line of visible letters and
/// before another one, where each of namedSplits() ends a piece. Without such a place they are longer.
std::vector<std::string_view> partsAtLines(std::string_view text, size_t bytes);

} // namespace kiln
