// Finds the fastest of several configs of a kernel, for given arguments on a device: the work of `kilnc --tune` and of
// kiln_tune().
//
//     kilnc scale.cc --tune --args='x=f32[1024x768], out=f32[1024x768]' --grid='out.0/rows' --budget=20 -o findings.txt
//
// It compiles the configs, compares the result of each with that of the first, the default, and measures in rounds
// (Search.h). On a simulated GPU whose rates the pipe model has, it predicts the times (Predict.h).

#pragma once

#include "runtime/Device.h"
#include "tools/kilnc/Search.h"

#include <functional>

namespace kiln::tools {

/// A config to try, and the numbers of its programs.
struct Trial {
  std::string config;
  Grid grid;
};

struct TuneOptions {
  double budget = 60;         // seconds, of which compiling takes 40 % at most
  bool exhaustive = false;    // every candidate gets all rounds
  bool variesResults = false; // a result that differs by rounding may win
  std::string buckets;        // extents that stand for their bucket in the finding: `x.0, out.0`
  std::string output;         // the file that gets the finding; empty for none
  int64_t refused = 0;        // configs that the kernel's constraint leaves out, for the table
  bool showsProgress = false; // on stderr, if that is a terminal
  SettingNames names = {};    // for messages
  /// Throws Error for a config that may not run with these arguments. Null: all may.
  std::function<void(const Signature &)> expectAllowed = nullptr;
};

/// A tuned kernel.
struct TuneReport {
  std::string config; // the fastest one
  std::string table;  // for people
  std::string faults; // candidates that are wrong, one a line
};

/// Tunes a kernel, expanded if it is variadic, and enters the finding in the file unless there are faults. At the end
/// the tensors that it writes have the contents of before. Throws Error when the first config does not compile or run.
TuneReport tuneKernel(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                      const std::vector<Trial> &trials, const TuneOptions &options);

} // namespace kiln::tools
