// Numbers that follow from a kernel's arguments and config, for --grid and --flops:
//
//     --grid='out.0/bm, out.1/bn'       extent 0 of argument `out` by field bm, rounded up
//     --flops='2*out.0*out.1*a.1'
//
// An operand is a number, a field of the config, an extent `argument.dimension` or a scalar argument. `*` and `/` are
// done from left to right, and `/` rounds up.

#pragma once

#include "dialect/dsl/Plan.h"

#include <string>
#include <vector>

namespace kiln::tools {

/// The numbers of programs: one to three expressions with commas. Throws Error with the part that is wrong.
Grid evaluateGrid(const std::string &text, const Kernel &kernel, const std::vector<Arg> &args,
                  const std::string &config);
/// One expression of a flag. Throws Error.
int64_t evaluate(const std::string &flag, const std::string &text, const Kernel &kernel, const std::vector<Arg> &args,
                 const std::string &config);

} // namespace kiln::tools
