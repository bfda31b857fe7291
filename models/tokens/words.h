// Words as Python's `text.lower().split()` has them: what stands between white space, in lower case.

#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// What ends a word among its characters: U+2581, which can be seen.
inline constexpr std::string_view endOfWord = "\u2581";

/// Calls `take` for the words of `text` in order, in lower case unless `cased`. U+2581 and each byte that is no UTF-8
/// count as U+FFFD.
void forWords(std::string_view text, const std::function<void(std::string_view)> &take, bool cased = false);

/// Bytes of the character that begins at `text[at]`, in UTF-8.
size_t characterAt(std::string_view text, size_t at);

} // namespace kiln
