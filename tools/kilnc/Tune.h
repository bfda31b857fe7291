// Finds the fastest of several configs of a kernel, for given arguments on a device: the work of `kilnc --tune` and of
// kiln_tune().
//
//     kilnc scale.cc --tune --args='x=f32[1024x768], out=f32[1024x768]' --grid='out.0/rows' --budget=20 -o findings.txt
//
// It walks through the configs (walk()): compiles some, compares the result of each with that of the first, the
// default, and measures them. The fastest are measured in rounds (search()). On a simulated GPU whose rates the pipe
// model has, it predicts the times (Measure.h).

#pragma once

#include "runtime/Device.h"

#include <functional>
#include <map>

namespace kiln::tools {

// --- The search among configs, without knowing kernels (Search.cpp) -------------------------------------------------

/// Ways to spell a tuner's settings, for messages: flags of kilnc, or arguments of the Python package.
struct SettingNames {
  std::string grid = "write that in --grid, as out.0/FIELD", config = "--config", variesResults = "--vary-results",
              budget = "--budget", bucket = "--bucket", exhaustive = "--exhaustive";
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

/// 0 to `count` - 1.
std::vector<size_t> allOf(size_t count);

/// The fields of a config, `name=value,…`.
std::map<std::string, std::string> fieldsOf(const std::string &config);

/// Configs as points: a coordinate for each field, its values in order. Values that are no numbers have no order.
class Space {
public:
  explicit Space(const std::vector<std::string> &configs);
  size_t size() const { return points.size(); }
  /// Configs that differ in one field: by the next larger or smaller value that there is, or by any value without
  /// order.
  std::vector<size_t> neighboursOf(size_t index) const;
  /// The sum over the fields of the distance, from 0 to 1.
  double distance(size_t one, size_t other) const;

private:
  struct Coordinate {
    bool isOrdered;
    int values; // how many
  };
  std::vector<Coordinate> fields;
  std::vector<std::vector<int>> points;
  std::map<std::vector<int>, size_t> indices;
};

/// Visits configs in batches. `visit` returns their values, of which the least is the best. It returns infinity for a
/// config whose neighbours are of no interest. Of at most 16 configs it visits all. Of more it visits config 0, two
/// that are far from it and from each other, and then, as long as there is time, the neighbours of the best three.
void walk(const Space &space, const std::function<std::vector<double>(const std::vector<size_t> &)> &visit,
          const std::function<bool()> &hasTime);

/// A candidate with the value of its rounds.
struct Ranked {
  size_t index = 0;
  double value = 0;
  int rounds = 0;
  double varied = 1; // the slow rounds (80 % are faster) by the fast ones (20 % are faster)
};

/// The options of a search.
struct SearchOptions {
  bool isExact = false;    // a measurement is the truth
  bool exhaustive = false; // every candidate gets all of the 9 rounds
  int rounds = 9;          // before those that a decision needs; with fewer than 9 there are no more
  int dropFrom = 2;        // the round from which on candidates are dropped; the first may be wrong on a busy machine
};

/// Measures candidates 0 to `count` - 1 in rounds, one after the other, and ranks those that were measured: the fastest
/// first, of equals the first. A round takes the fastest of three measurements of a candidate. Its value is the lower
/// quartile of its rounds, because other programs make times longer and never shorter. After round 2 and 3, candidates
/// are dropped whose rounds all took over 2.6 times the value of the best. A busy machine may double times. From round
/// 4 on, those are dropped whose rounds all took longer, or for the second best, 1.3 times as long. The first, the
/// default, always stays. There are 9 to 36 rounds. Rounds are added until the values differ clearly or by less than 2
/// %, or the fastest rounds by less than 1 %. An exact measure gets one round of one measurement. When `hasTime` says
/// no, the search ends, and candidates that were not measured are left out.
std::vector<Ranked> search(size_t count, SearchOptions options, const std::function<double(size_t)> &measure,
                           const std::function<bool()> &hasTime);

// --- Tuning a kernel ------------------------------------------------------------------------------------------------

/// A config to try, and the numbers of its programs.
struct Trial {
  std::string config;
  Grid grid;
};

struct TuneOptions {
  double budget = 60;         // seconds, of which compiling takes 40 % at most
  bool exhaustive = false;    // every candidate is visited and gets all rounds
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
  std::string faults; // candidates that were visited and are wrong, one a line
};

/// Tunes a kernel, expanded if it is variadic, and enters the finding in the file unless there are faults. At the end,
/// the tensors that it writes have their original contents. Throws Error when the first config does not compile or run.
TuneReport tuneKernel(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                      const std::vector<Trial> &trials, const TuneOptions &options);

} // namespace kiln::tools
