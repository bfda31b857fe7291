// What `kiln-bench static` knows of a kernel: the compiler's text, NVIDIA's assembler's and disassembler's, the
// simulator's counts, and what the pipe model makes of them.

#pragma once

#include "tools/kiln-bench/assembly.h"
#include "tools/kiln-bench/pipe_model.h"
#include "tools/kiln-bench/problems.h"
#include "tools/kiln-bench/sample.h"
#include "tools/kiln-bench/sass.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln::bench {

/// Counts of machine code, by warp.
struct SassCounts {
  Work loop; // a round of the main loop; empty when there is none
  Work whole;
};
/// Of the first kernel of a text. Throws Error when it has none.
SassCounts countsOf(const std::string &sass);

struct StaticRow {
  Problem problem;
  std::string error; // why there is nothing else; empty: there is
  Assembly assembly;
  std::optional<int> registers; // by ptxas
  int spillBytes = 0;
  bool warned = false;
  std::optional<SassCounts> sass;
  Sample sample;
  Occupancy occupancy;                 // without ptxas by what a thread may have at most
  std::vector<Prediction> predictions; // on each of machines()
  std::optional<double> measured;      // seconds, on a GPU

  double programs() const;
  /// Of the whole launch.
  double total(double Traffic::*field) const { return programs() * sample.ofProgram.*field; }
};

/// What there is to look with.
struct Instruments {
  std::shared_ptr<Device> device;
  simulator::Memory &memory;   // that holds the problems' operands
  std::string ptxas, nvdisasm; // empty: none
  int programs = 4;            // of a launch that are run
};
std::vector<StaticRow> examine(const std::vector<Problem> &problems, const Instruments &instruments);
/// Tells which of NVIDIA's programs are not there.
void tellWhatIsMissing(const Instruments &instruments);
/// Instructions of a warp, of machine code, in a round of the text's main loop; of the whole kernel where there is
/// none.
double instructionsOfRound(const StaticRow &row);

/// Another compiler's kernel for a problem, as tools/kiln-bench/triton_static.py wrote it down.
struct PeerRow {
  std::string problem, dtype, architecture, tiles; // "bm=128 bn=128 bk=64 warps=4 stages=3"
  int64_t bm = 0, bn = 0, bk = 0, warps = 0;
  int registers = 0, stack = 0, shared = 0;
  SassCounts sass;
};
std::vector<PeerRow> peerRows();
/// The one to compare with: that of the same problem, type and architecture, with the same tile if there is one, else
/// with the fewest instructions a product; null when there is none.
const PeerRow *peerOf(const std::vector<PeerRow> &peers, const Problem &problem, int architecture);

/// A row as JSON, and counts as triton_static.json has them.
nlohmann::ordered_json jsonOf(const StaticRow &row, const PeerRow *peer);
nlohmann::ordered_json jsonOf(const SassCounts &counts);

} // namespace kiln::bench
