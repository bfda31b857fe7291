// The work of --tune on one kernel: its candidates, and the memory that they are launched on.

#pragma once

#include "runtime/Compile.h"
#include "tools/kilnc/Measure.h"
#include "tools/kilnc/RunArguments.h"
#include "tools/kilnc/Search.h"
#include "tools/kilnc/Tune.h"

#include <set>

namespace kiln::tools {

/// One config on its way.
struct Candidate {
  std::string config;
  Grid grid;
  std::shared_ptr<const Executable> executable; // null: left out
  std::string error;                            // why it is left out; empty for lack of time
  int times = 1;                                // launches in a row that one measurement takes
};

/// Every step uses what the steps before it found. Trials.cpp has the steps up to measuring, Tune.cpp the others.
class Tuning {
public:
  Tuning(const Kernel &kernel, const TuneOptions &options);
  TuneReport run();

private:
  using Contents = std::vector<std::vector<char>>; // of the tensors
  /// The result of a config. All configs with its values of the fields that change results must have it, too.
  struct Expected {
    std::string config;
    Contents contents;
    bool isRepeatable = true; // two launches have the same result
  };
  void compileAll();
  void compileOne(Candidate &candidate) const;
  void checkAll();
  std::string checkOne(Candidate &candidate, const Expected *expected);
  Contents contents() const;
  void restore();
  std::string differenceOf(const Contents &got, const Expected &expected) const;
  std::string table(const std::vector<Ranked> &ranked) const;
  void enter(const Ranked &best, const Ranked &byDefault) const;
  std::set<std::pair<int, int>> bucketsAsked() const;
  double elapsed() const { return secondsNow() - begun; }
  void progress(const std::string &text) const;

  const Kernel &kernel;
  const TuneOptions &options;
  const double begun = secondsNow();
  const Forgetting forgetting;
  const std::shared_ptr<Device> device;
  LaunchMemory memory;
  const std::set<std::pair<int, int>> buckets;
  Contents originals;
  std::vector<Candidate> candidates;
  int64_t refused = 0;
  std::string leftOut, faults;
  Measure measure;
};

} // namespace kiln::tools
