// Checks of a module's text before MLIR's parser sees it.
//
// The parser recurses on every bracket, operator and alias of its input. Deep input overflows the stack and ends the
// program, and so do a few rare spellings. One pass over the characters finds both.

#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace kiln::lowering {

/// Maximum size of a module in bytes.
inline constexpr int64_t maxModuleBytes = int64_t(64) << 20;
/// Maximum nesting of brackets: loops, lists and types together.
inline constexpr int maxNesting = 256;
/// Maximum number of words and signs between two commas or brackets, outside of the body of a loop or function.
inline constexpr int maxWords = 1024;

/// Throws Error (user), `path:line: error: …`, if `text` is not UTF-8 or is a module that the parser must not see. A
/// text that passes may still be invalid.
void checkModuleText(llvm::StringRef text, const std::string &path);

} // namespace kiln::lowering
