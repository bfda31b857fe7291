// What the text of a module must be before MLIR's parser gets it.
//
// The parser recurses with every bracket, operator and alias of its input, and ends the program when its stack does, or
// on the few spellings that it trusts nobody to write. One pass over the characters finds both.

#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace kiln::lowering {

/// The largest module that is read, in bytes.
inline constexpr int64_t mostModuleBytes = int64_t(64) << 20;
/// How deep brackets may lie within each other: loops, lists, types, all together.
inline constexpr int mostNesting = 256;
/// How many words and signs may stand between two commas or brackets, outside of a loop's or a function's body.
inline constexpr int mostWords = 1024;

/// Throws Error (user), `path:line: error: …`, when `text` is not UTF-8, or is a module that the parser must not see.
/// Passing says nothing else of it.
void checkModuleText(llvm::StringRef text, const std::string &path);

} // namespace kiln::lowering
