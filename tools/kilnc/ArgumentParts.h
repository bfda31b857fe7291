// Splits the flag --args into one part for each parameter of a kernel: by position, by name, or the first ones by
// position and the others by name.
//
//     --args='f32[?x64], out=f32[?x64], factor=f32'

#pragma once

#include "dialect/dsl/Kernel.h"

#include <optional>

namespace kiln::tools {

/// The parts, without names, in the order of the parameters; nothing for a parameter that has none. Without names there
/// are as many as the flag has, whatever number the kernel takes. Throws Error for an unknown name, for a parameter
/// that has two parts, and for a part by position after one by name.
std::vector<std::optional<std::string>> argumentParts(const Kernel &kernel, const std::string &text);

/// A kernel and its arguments, each view on its own.
struct ExpandedText {
  const Kernel *kernel;
  std::string args;
};
/// A kernel in its form for the views of --args, where `none` is an absent view, and a list of views stands in
/// brackets: `f32[?], none, [f32[8], f32[?]]`. A kernel that is not variadic is its own form. Throws Error for a part
/// that does not fit its parameter.
ExpandedText expandArguments(const Kernel &kernel, const std::string &text);

/// ` (x, y, alpha)`, the parameters' names for messages; empty if the registration names none.
std::string parameterNames(const Kernel &kernel);

} // namespace kiln::tools
