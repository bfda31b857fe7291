// What kilnc knows of its own build: where its headers are, and which headers of the language it speaks.

#pragma once

namespace kiln::tools {

/// The headers that a user's file sees through dialect/dsl/Kernel.h.
inline constexpr const char *languageHeaders[] = {
    "dialect/dsl/Functions.h",   "dialect/dsl/Kernel.h", "dialect/dsl/Mistakes.h",      "dialect/dsl/Plan.h",
    "dialect/dsl/Tile.h",        "dialect/dsl/Types.h",  "dialect/dsl/MathFunctions.h", "dialect/tile/ElementTypes.def",
    "dialect/tile/Functions.def"};
/// A hash of their content.
extern const char *const languageIdentity;
/// The folder in the build that holds them as dialect/dsl/Kernel.h and so on.
extern const char *const builtHeaders;

} // namespace kiln::tools
