// Facts about kilnc's build: the folder of its headers, and the identity of the language's headers.

#pragma once

#include <span>

namespace kiln::tools {

/// The headers that a user's file sees through dialect/dsl/Kernel.h.
extern const std::span<const char *const> languageHeaders;
/// A hash of their content.
extern const char *const languageIdentity;
/// The folder in the build that holds them as dialect/dsl/Kernel.h and so on.
extern const char *const builtHeaders;

} // namespace kiln::tools
