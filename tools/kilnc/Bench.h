// The flag --bench: the times of a kernel over a range of sizes, next to those of other configs or kernels.
//
//     kilnc norm.cc --bench --sweep='M=256:4096:*2' --args='x=f32[Mx768], out=f32[Mx768]' --grid=out.0/rows
//         --against=rows=8
//
// For each size all lines are compiled, and then measured in turn on the same memory, so that a change of the machine's
// speed affects all of them.

#pragma once

#include "dialect/dsl/Kernel.h"

#include <optional>

namespace kiln::tools {

/// A line of the benchmark: a kernel with a config.
struct BenchLine {
  std::string label; // as the command line spells it; empty for the kernel of --kernel without a config
  const Kernel *kernel = nullptr;
  std::string config, grid;
};

/// The other options of --bench. The first line is the baseline.
struct BenchOptions {
  std::string device = "cpu", args, sweep;
  bool isNamed = false; // whether --args has names of parameters
  std::string flops;    // of a launch, for TFLOP/s
  int repeat = 20;      // measurements of each line and size
  std::string csv, picture;
};

/// The table of the sizes before one that fails, or of all; `error` says why that one failed.
struct BenchReport {
  std::string table;
  std::optional<Error> error;
};

/// Measures all lines at all sizes. A line without a config takes that of KILN_FINDINGS for its arguments. Writes the
/// files of the options for the sizes that did not fail. Throws Error if there is none.
BenchReport benchmark(const std::vector<BenchLine> &lines, const BenchOptions &options);

} // namespace kiln::tools
