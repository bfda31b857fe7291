// Counts of a launch's accesses to shared and global memory, by the simulator. It runs a few programs of the real grid,
// with the real extents, on zeros, with the checks off.
//
// Also the pipe model's input for a launch: these counts, with the instructions of the machine code if it is known.

#pragma once

#include "runtime/Compile.h"
#include "runtime/simulator/Memory.h"
#include "runtime/simulator/Metrics.h"
#include "tools/kiln-bench/assembly.h"

#include <optional>

namespace kiln::bench {

/// Accesses of one program, or of one iteration of all its warps.
struct Traffic {
  double wavefronts = 0;             // of shared memory
  double conflictFreeWavefronts = 0; // of the same accesses, if no two words met in a bank
  double idealWavefronts = 0;        // if every byte of each were used
  double loadSectors = 0, idealLoadSectors = 0;
  double storeSectors = 0, idealStoreSectors = 0;
  double accesses = 0, bytes = 0; // of global memory, by warps
  double barriers = 0, waits = 0; // each counted once for all warps
  double bytesInFlight = 0;       // of all warps, after a wait
  double loadBytes = 0;           // requested
  double directBytes = 0;         // of loadBytes, to registers

  double bytesOfLane() const { return accesses > 0 ? bytes / accesses / 32 : 0; }
};

struct Sample {
  int threads = 0;
  int64_t sharedBytes = 0;
  Work program, round; // PTX instructions of all warps: of an average program, of an iteration of its main loop
  Traffic ofProgram, ofRound;
  double rounds = 0;       // iterations of the main loop of a program; 0: there is no loop
  double outside = 0;      // instructions of the text outside of the main loop
  double insideLoop = 0;   // instructions of the text in the main loop
  double bytesAhead = 0;   // loaded to registers before the main loop and used after it, by a program
  std::vector<bool> reads; // of each argument: whether the kernel may read it
};

/// The counts of a launch of which `programs` programs ran, with `sharedBytes` of shared memory each.
Sample takeSample(const Signature &signature, const simulator::Program &program, const simulator::Metrics &metrics,
                  int64_t sharedBytes, double programs);

/// Runs at most `programs` programs of the launch, spread over its grid. `ptx` is its code; its arguments are in
/// `memory`, with a workspace at `workspace`. Throws Error if the code does not compile or the run has findings.
Sample takeSample(Device &device, const Launch &launch, const std::string &ptx, simulator::Memory &memory,
                  void *workspace, int programs);

// --- The work of a launch --------------------------------------------------------------------------------------------

/// Counts of a warp's machine code.
struct SassCounts {
  Work loop; // an iteration of the main loop; empty without a loop
  Work whole;
};
/// The counts of the first kernel of a disassembly. Throws Error if it has none.
SassCounts countsOf(const std::string &sass);
/// A warp's machine instructions in an iteration of the PTX's main loop; those of the whole kernel without a loop.
double instructionsOfRound(const Sample &sample, const SassCounts &sass);

/// The number of programs of all problems of a launch.
double programsOf(const Launch &launch);
/// The programs that are resident on an SM. Without `registers`, a thread is taken to have the maximum number.
Occupancy occupancyOf(const GpuFacts &gpu, std::optional<int> registers, const Sample &sample);
/// The input of predict(). `sass` may be null.
LaunchWork launchWorkOf(const Launch &launch, const Sample &sample, const SassCounts *sass, const Occupancy &occupancy);

} // namespace kiln::bench
