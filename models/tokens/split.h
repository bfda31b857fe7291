// Cuts a text: into words, into pieces, and into parts for several threads.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

//===-- Words ---------------------------------------------------------------------------------------------------===//
// Words as in Python's `text.lower().split()`: lower-case text between white space.

/// Marks the end of a word: U+2581, a visible character.
inline constexpr std::string_view endOfWord = "\u2581";

/// Calls `take` for the words of `text` in order, in lower case unless `cased`. U+2581 and bytes that are not UTF-8
/// count as U+FFFD.
void forWords(std::string_view text, const std::function<void(std::string_view)> &take, bool cased = false);

/// Bytes of the UTF-8 character that begins at `text[at]`.
size_t characterAt(std::string_view text, size_t at);

//===-- Pieces --------------------------------------------------------------------------------------------------===//
// Cuts a text into pieces by a regular expression, as GPT-2's tokenizer does before merging.

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

//===-- Threads -------------------------------------------------------------------------------------------------===//

/// Runs `count` tasks, each on the first free one of `threads` threads. Each thread calls `worker` once for the
/// function that runs its tasks. An exception of a task is rethrown when all threads are done.
void workTogether(int threads, size_t count, const std::function<std::function<void(size_t)>()> &worker);

} // namespace kiln
