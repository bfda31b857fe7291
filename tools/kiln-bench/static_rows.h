// What `kiln-bench static` knows of a kernel: the compiler's text, NVIDIA's assembler's and disassembler's, the
// simulator's counts, and what the pipe model makes of them.

#pragma once

#include "tools/kiln-bench/assembly.h"
#include "tools/kiln-bench/launch_work.h"
#include "tools/kiln-bench/problems.h"

#include <nlohmann/json_fwd.hpp>
#include <span>

namespace kiln::bench {

struct StaticRow {
  Problem problem;
  std::string error; // why there is nothing else; empty: there is
  Assembly assembly;
  std::optional<int> registers; // by ptxas
  int spillBytes = 0;
  bool warned = false;
  std::optional<SassCounts> sass;
  Sample sample;
  Occupancy occupancy; // without ptxas by what a thread may have at most
  LaunchWork launch;
  std::vector<Prediction> predictions; // on each of machines()
  std::optional<double> measured;      // seconds, on a GPU

  double programs() const;
  /// Of the whole launch.
  double total(double Traffic::*field) const { return programs() * sample.ofProgram.*field; }
};

/// What there is to look with.
struct Instruments {
  const std::shared_ptr<Device> &device;
  simulator::Memory &memory;   // that holds the problems' operands
  std::string ptxas, nvdisasm; // empty: none
  int programs = 4;            // of a launch that are run; 0: there is no sample, and nothing that follows from one
};
/// Looks at all of them. Throws Error where the device is no GPU.
std::vector<StaticRow> examine(const std::vector<Problem> &problems, const Instruments &instruments);
/// Tells which of NVIDIA's programs are not there.
void tellWhatIsMissing(const Instruments &instruments);

/// Another compiler's kernels, as tools/kiln-bench/triton_static.py writes them to a file: an array, empty for no file.
/// Throws Error for a file that is none of its.
nlohmann::json peerRows(const std::string &file);
/// The one to compare with: that of the same problem, type and architecture, with the same tile if there is one, else
/// with the fewest instructions for its work; null when there is none.
const nlohmann::json *peerOf(const nlohmann::json &peers, const Problem &problem, int architecture);

/// All that is known of a row, and of the peer that stands beside it unless it is null; and counts alone.
nlohmann::ordered_json jsonOf(const StaticRow &row, const nlohmann::json *peer);
nlohmann::ordered_json jsonOf(const SassCounts &counts);

/// A column of a table: what stands above it, where its value stands in a row's JSON, and its width.
struct Column {
  const char *title, *path;
  int width;
};
/// A line for each row, by its kernel and type; rows with an error have that instead.
std::string tableOf(const std::vector<nlohmann::ordered_json> &rows, std::span<const Column> columns);

} // namespace kiln::bench
