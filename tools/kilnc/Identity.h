// What kilnc knows of its own build: where the sources were, and which headers of the language it speaks.

#pragma once

namespace kiln::tools {

/// The headers that a user's file sees through dialect/dsl/Kernel.h.
inline constexpr const char *languageHeaders[] = {"dialect/dsl/Kernel.h", "dialect/dsl/Mistakes.h",
                                                  "dialect/dsl/Plan.h",   "dialect/dsl/Tile.h",
                                                  "dialect/dsl/Types.h",  "dialect/tile/ElementTypes.def"};
/// A hash of their content.
extern const char *const languageIdentity;
/// The root of the sources when this was built.
extern const char *const sourceFolder;

} // namespace kiln::tools
