// The data of `kiln-bench static` about a kernel: its PTX, the outputs of ptxas and nvdisasm, the simulator's counts,
// and the predictions of the performance model.

#pragma once

#include "tools/kiln-bench/assembly.h"
#include "tools/kiln-bench/problems.h"
#include "tools/kiln-bench/sample.h"

#include <nlohmann/json_fwd.hpp>

#include <span>

namespace kiln::bench {

struct StaticRow {
  Problem problem;
  std::string error; // if not empty, the reason why the other members are not set
  Assembly assembly;
  std::optional<int> registers; // by ptxas
  int spillBytes = 0;
  bool warned = false;
  std::optional<SassCounts> sass;
  Sample sample;
  Occupancy occupancy; // without ptxas, for the maximum number of registers of a thread
  LaunchWork launch;
  std::vector<Prediction> predictions; // on each of machines()
  std::optional<double> measured;      // seconds, on a GPU

  double programs() const;
  /// The sum over all programs of the launch.
  double total(double Traffic::*field) const { return programs() * sample.ofProgram.*field; }
};

/// The tools for measuring.
struct Instruments {
  const std::shared_ptr<Device> &device;
  simulator::Memory &memory;   // has the problems' operands
  std::string ptxas, nvdisasm; // empty: none
  int programs = 4;            // number of programs of a launch that are simulated; 0: no sample, and no counts from it
};
/// Measures all problems. Throws Error unless the device is a GPU or simulates one.
std::vector<StaticRow> examine(const std::vector<Problem> &problems, const Instruments &instruments);
/// Prints which of NVIDIA's programs are missing.
void tellWhatIsMissing(const Instruments &instruments);

/// The kernels of another compiler from a file of tools/kiln-bench/triton_static.py: an array, empty without a file.
/// Throws Error for a file of another form.
nlohmann::json peerRows(const std::string &file);
/// The row to compare with: equal problem, type and architecture. Among several, the one with an equal tile, otherwise
/// the one with the fewest instructions for its work. Null if there is none.
const nlohmann::json *findPeer(const nlohmann::json &peers, const Problem &problem, int architecture);

/// The data of a row, with its peer unless it is null; and of counts.
nlohmann::ordered_json jsonOf(const StaticRow &row, const nlohmann::json *peer);
nlohmann::ordered_json jsonOf(const SassCounts &counts);

/// A column of a table: its title, the path of its value in a row's JSON, and its width.
struct Column {
  const char *title, *path;
  int width;
};
/// A table with a line for each row: kernel and type, then the columns, or the row's error.
std::string tableOf(const std::vector<nlohmann::ordered_json> &rows, std::span<const Column> columns);

// --- The work of a launch as JSON: with this input of the pipe model its predictions can be repeated ----------------

nlohmann::ordered_json jsonOf(const LaunchWork &launch);
/// The inverse of jsonOf(). Throws nlohmann::json::exception if a field is missing or has another type.
LaunchWork launchWorkOf(const nlohmann::json &json);

// --- The ratchet ----------------------------------------------------------------------------------------------------

// Baselines: a file with memory traffic, waits and other counts of kernels. A test fails if a number gets worse.

/// The measures of a row, by name. A larger number is worse; more registers are worse only if fewer warps then fit an
/// SM. Numbers are those of the whole launch. The idle warps of an SM (the maximum less the resident ones), registers
/// and spills need ptxas.
std::vector<std::pair<std::string, int64_t>> gatedCounts(const StaticRow &row);

/// Compares rows with the file, a JSON object of kernels, each an object of measures. Returns a line for each worse
/// number, for each kernel that only the file has, and for each kernel that the file lacks; empty if there is none.
/// Measures that a row lacks are skipped, and named in `skipped`. Throws Error if the file cannot be read.
std::string compareWith(const std::string &file, const std::vector<StaticRow> &rows, std::string &skipped);
/// Writes the rows to the file as new baselines.
void accept(const std::string &file, const std::vector<StaticRow> &rows);

} // namespace kiln::bench
