// Words as in Python's `text.lower().split()`: lower-case text between white space.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// Marks the end of a word: U+2581, a visible character.
inline constexpr std::string_view endOfWord = "\u2581";

/// Calls `take` for the words of `text` in order, in lower case unless `cased`. U+2581 and bytes that are not UTF-8
/// count as U+FFFD.
void forWords(std::string_view text, const std::function<void(std::string_view)> &take, bool cased = false);

/// Bytes of the UTF-8 character that begins at `text[at]`.
size_t characterAt(std::string_view text, size_t at);

} // namespace kiln
