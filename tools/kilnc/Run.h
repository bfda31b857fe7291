// The flag --run: launches a kernel on arrays in files, so that trying one needs no program.
//
//     kilnc axpy.cc --run --grid=64 --args='x.npy, y.npy->y.npy, 0.5'
//     kilnc --kernel=matmul --run --grid='c.0/bm, c.1/bn' --args='c=f32[256x512]->c.npy, a=a.npy, b=b.npy' --repeat=20
//
// RunArguments.h has the form of --args, Expression.h that of --grid and --flops.

#pragma once

#include "runtime/Device.h"

namespace kiln::tools {

/// The options of --run.
struct RunOptions {
  std::string device = "cpu", grid, args, config;
  int repeat = 0;         // launches to measure after the first, whose result the files get
  std::string flops;      // of a launch, for TFLOP/s
  std::string report;     // the file of the HTML report; empty for none
  bool isBuiltIn = false; // whether the kernel is built into kilnc
};

/// Launches the kernel once and writes what is to be written, then `repeat` times more; a line with the time of the
/// launch, or the median of the repeated ones, with percentiles and throughput. Compiling is not part of it. Without a
/// config it takes that of KILN_FINDINGS (runtime/Findings.h), which is said on stderr. Throws Error; nothing is
/// written when the launch or one of its checks fails.
std::string runKernel(const Kernel &kernel, const RunOptions &options);

} // namespace kiln::tools
