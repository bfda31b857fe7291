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

/// The flag --sweep: names in --args, --grid and --flops that stand for a number of sizes in turn.
///
///     --sweep M=256:4096:*2        256, 512, …, 4096
///     --sweep M=128:1024:+128      128, 256, …, 1024
///     --sweep M,N,K=512,1000,2048  these sizes, for all three names
///     --args='f32[MxK], f32[KxN], f32[MxN]'
struct Sweep {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;

  /// Throws Error with the part that is wrong. Without text there is one size and no name.
  static Sweep parse(const std::string &text);
  /// `text` with `size` for every name: an extent within brackets, and a whole word elsewhere, such as the end of a
  /// range `(0..N)`. A word before `=` or next to a single `.` is a parameter, and stays.
  std::string replacedIn(const std::string &text, int64_t size) const;
  /// Throws Error for a name that `args` does not use.
  void checkUsed(const std::string &args) const;
};

} // namespace kiln::tools
