// The flag --tune: which config of a kernel is fastest for these arguments on a device.
//
//     kilnc scale.cc --tune --args='x=f32[1024x768], out=f32[1024x768]' --grid='out.0/rows' --budget=20 -o findings.txt
//
// It compiles the combinations of the candidates of the config's fields, compares the result of each with that of the
// default config, and measures in rounds (Search.h). New tensors hold the numbers that RunArguments.h lists.

#pragma once

#include "dialect/dsl/Kernel.h"

namespace kiln::tools {

/// The options of --tune.
struct TuneOptions {
  std::string device = "cpu", grid, args;
  std::string config;         // fields that keep these values
  double budget = 60;         // seconds, of which compiling takes 40 % at most
  bool variesResults = false; // fields that change results vary, too
  bool exhaustive = false;    // every candidate gets all rounds
  std::string buckets;        // extents that stand for their bucket in the finding: `x.0, out.0`
  std::string output;         // the file that gets the finding; empty for none
};

/// A tuned kernel, for people, and its faults: candidates that are wrong, one a line.
struct TuneReport {
  std::string table, faults;
};

/// Tunes the kernel and enters the finding in the file. Throws Error when the default config does not compile or run.
TuneReport tuneKernel(const Kernel &kernel, const TuneOptions &options);

} // namespace kiln::tools
