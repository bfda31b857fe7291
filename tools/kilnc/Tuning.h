// The work of tuning one kernel: its candidates, and the contents of the memory that they are launched on.

#pragma once

#include "runtime/Compile.h"
#include "runtime/Facts.h"
#include "tools/kilnc/Measure.h"
#include "tools/kilnc/Tune.h"

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace kiln::tools {

/// One config on its way.
struct Candidate {
  std::string config;
  Grid grid;
  std::shared_ptr<const Executable> executable; // null: left out
  std::string error;                            // why it is left out; empty for lack of time
  int times = 1;                                // launches in a row that one measurement takes
  std::optional<double> predicted;              // microseconds, by the pipe model
  bool rounds = false;                          // its result differs from the expected one by rounding
  bool wasVisited = false, hasKey = false;      // its code is among those of Tuning
  bool isCopy = false;                          // it has the code and the programs of an earlier candidate
  Ranked first = {};                            // its value in the walk
};

/// The candidates are visited in batches. Every step uses the results of the steps before it. Trials.cpp has the steps
/// up to measuring, Tune.cpp the others.
class Tuning {
public:
  Tuning(Device &device, const Kernel &kernel, const std::vector<Arg> &args, const std::vector<Trial> &trials,
         const TuneOptions &options);
  /// Restores the tensors.
  ~Tuning();
  Tuning(const Tuning &) = delete;
  TuneReport run();

private:
  using Contents = std::vector<std::vector<char>>; // of the tensors that are written, from their first byte to the last
  /// The result of a candidate. All with its values of the fields that change results must have it, too.
  struct Expected {
    size_t candidate;
    Contents contents;
    bool isRepeatable = true; // two launches have the same result
  };
  /// An element that differs from the expected one.
  struct Difference {
    std::string text;        // empty: no element differs
    bool isRounding = false; // all that differ do so within the rounding errors of a sum in another order
  };
  void walkAll();
  std::vector<double> visit(const std::vector<size_t> &batch);
  void forEach(const std::vector<size_t> &batch, const std::function<void(Candidate &)> &work);
  void compileAll(const std::vector<size_t> &batch);
  std::shared_ptr<const Executable> executableOf(const std::string &config) const;
  void compileOne(Candidate &candidate);
  void findCopies(const std::vector<size_t> &batch);
  void findAccesses(const std::vector<size_t> &batch);
  void expectResult(size_t candidate);
  void checkAll(const std::vector<size_t> &batch);
  void compare(size_t candidate);
  void explainDifferences();
  Difference checkOne(Candidate &candidate, const Expected *expected);
  std::vector<char> download(const Range &range) const;
  Contents contents() const;
  void upload(const Contents &all);
  Difference differenceOf(const Contents &got, const Expected &expected) const;
  void dropSlow(const std::vector<size_t> &batch);
  std::vector<double> race(const std::vector<size_t> &batch);
  std::vector<size_t> finalists() const;
  /// Whether times are predictions, on a simulator, and not measured.
  bool isPredicted() const { return rates && simulator; }
  const char *unit() const { return isPredicted() ? "us" : measure.unit(); }
  double measureOne(Candidate &candidate);
  std::string table(const std::vector<Ranked> &ranked) const;
  void enter(const Ranked &best, const Ranked &byDefault) const;
  std::set<std::pair<int, int>> bucketsAsked() const;
  double elapsed() const { return secondsNow() - begun; }
  void progress(const std::string &text) const;

  Device &device;
  const Kernel &kernel;
  const std::vector<Arg> &args;
  const TuneOptions &options;
  const double begun = secondsNow();
  const std::set<std::pair<int, int>> buckets;
  std::vector<Candidate> candidates;
  std::vector<size_t> read, written; // arguments that a visited candidate reads and writes
  Contents originals, unlikely;      // of those written; the second before a launch that is checked
  std::vector<Expected> results;     // one for each choice of the fields that change results
  bool differs = false, excludesRounding = false;
  std::string leftOut, faults;
  std::map<std::pair<std::string, std::array<int64_t, 3>>, size_t> codes; // candidates by their code and grid
  size_t fastest = 0;                                                     // of those visited
  double leastPredicted = std::numeric_limits<double>::infinity();        // of those visited
  bool ranOut = false;                                                    // of time, before the walk was at its end
  Measure measure;
  const bench::MachineRates *const rates; // of the device's GPU; null: there is no prediction
  SimulatorDevice *const simulator;       // the device; null: it is none
};

} // namespace kiln::tools
