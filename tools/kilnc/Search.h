// The search of a tuner among configs, without knowing kernels: which configs there are, and which is fastest.

#pragma once

#include "dialect/dsl/Plan.h"

#include <functional>
#include <string>
#include <vector>

namespace kiln::tools {

/// Ways to spell a tuner's settings, for messages: flags of kilnc, or arguments of the Python package.
struct SettingNames {
  std::string grid = "write that in --grid, as out.0/FIELD", config = "--config", variesResults = "--vary-results",
              budget = "--budget", bucket = "--bucket";
};

/// Configs to try, the default first, then those with few fields that differ from it.
struct Candidates {
  std::vector<std::string> configs; // every field that varies, `bm=64,bn=32`, after the fixed ones
  int64_t refused = 0;              // that the kernel's constraint leaves out
};

/// All combinations of the candidates of the kernel's fields (Field::among) and their defaults. Fields in `fixed`,
/// `name=value,…`, keep that value. Fields that change results keep theirs unless `variesResults`. Throws Error if no
/// field varies, or for more than 100000 combinations.
Candidates candidatesOf(const Kernel &kernel, const std::string &fixed, const Target &target, bool variesResults,
                        const SettingNames &names = {});
/// Whether a config of candidatesOf() gives a field that changes results another value than the first config.
bool changesResults(const Kernel &kernel, const std::string &config, const std::string &byDefault);

/// A candidate with the median of its rounds.
struct Ranked {
  size_t index = 0;
  double value = 0;
  int rounds = 0;
};

/// The options of a search.
struct SearchOptions {
  bool isExact = false;    // a measurement is the truth
  bool exhaustive = false; // every candidate gets all rounds
};

/// Measures candidates 0 to `count` - 1 in rounds, one after the other, and ranks those that were measured: the fastest
/// first, of equals the first. A round takes the median of three measurements of a candidate. Candidates with more than
/// 1.3 times the time of the best are dropped after round 2, 3 or 4, and from round 5 on two are left; the first, the
/// default, always stays. These get 9 rounds. An exact measure gets one round of one measurement. When `hasTime` says
/// no, the search ends, and candidates that were not measured are left out.
std::vector<Ranked> search(size_t count, SearchOptions options, const std::function<double(size_t)> &measure,
                           const std::function<bool()> &hasTime);

} // namespace kiln::tools
