// The flag --run: launches a kernel on arrays in files, so that trying one needs no program. The flag --bench: the
// times of a kernel over a range of sizes, next to those of other configs or kernels.
//
//     kilnc axpy.cc --run --grid=64 --args='x.npy, y.npy->y.npy, 0.5'
//     kilnc --kernel=matmul --run --grid='c.0/bm, c.1/bn' --args='c=f32[256x512]->c.npy, a=a.npy, b=b.npy' --repeat=20
//     kilnc norm.cc --bench --sweep='M=256:4096:*2' --args='x=f32[Mx768], out=f32[Mx768]' --grid=out.0/rows
//         --against=rows=8
//
// Arguments.h has the form of --args, Expression.h that of --grid, --flops and --sweep. With --bench, all lines are
// compiled for each size and then measured in turn, on the same memory. So a change of the machine's speed affects all
// of them.

#pragma once

#include "dialect/dsl/Kernel.h"
#include "tools/kilnc/Peer.h"

#include <optional>

namespace kiln::tools {

/// The options of --run.
struct RunOptions {
  std::string device = "cpu", grid, args, config;
  int repeat = 0;         // launches to measure after the first, whose result the files get
  std::string flops;      // of a launch, for TFLOP/s
  std::string report;     // the file of the HTML report; empty for none
  bool isBuiltIn = false; // whether the kernel is built into kilnc
};

/// Launches the kernel once and writes the files that --args names, then launches it `repeat` times more. Returns a
/// line with the time of the launch, or the median of the repeated ones with percentiles and throughput, without
/// compiling. Without a config it takes that of KILN_FINDINGS (runtime/Findings.h), and says so on stderr. Throws
/// Error; nothing is written if the launch or one of its checks fails.
std::string runKernel(const Kernel &kernel, const RunOptions &options);

/// A line of the benchmark: a kernel with a config.
struct BenchLine {
  std::string label; // as the command line spells it; empty for the kernel of --kernel without a config
  const Kernel *kernel = nullptr;
  std::string config, grid;
  bool usesFindings = true; // without a config, that of KILN_FINDINGS
};

/// The other options of --bench. The first line is the baseline.
struct BenchOptions {
  std::string device = "cpu", args, sweep;
  bool isNamed = false; // whether --args has names of parameters
  std::string flops;    // of a launch, for TFLOP/s
  int repeat = 20;      // measurements of each line and size
  std::string csv, picture;
  PeerOptions peers; // each is a line, after the others
};

/// The table of the sizes before one that fails, or of all; `error` says why that one failed.
struct BenchReport {
  std::string table;
  std::optional<Error> error;
};

/// Measures all lines, and the peers, at all sizes. A line without a config takes that of KILN_FINDINGS for its
/// arguments, if it uses findings. Writes the files of the options for the sizes that did not fail. Throws Error if
/// there is none.
BenchReport benchmark(const std::vector<BenchLine> &lines, const BenchOptions &options);

} // namespace kiln::tools
