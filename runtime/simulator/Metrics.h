// Counts per step of a program: instructions and memory traffic of hardware. Times, latencies, caches and occupancy are
// not modelled.
//
// Shared memory has 32 banks of 4 bytes. A warp access takes one pass of 32 lanes for up to 4 bytes per lane, and two
// passes of 16 for 8 bytes. For 16 bytes, and for rows of ldmatrix and stmatrix, it takes passes of 8 lanes. A pass
// takes as many *wavefronts* as the maximum number of distinct words in one bank (bank conflicts). Each distinct byte
// counts once; 128 bytes fill a wavefront.
//
// Global memory moves *sectors* of 32 bytes: those that the lanes touch (coalescing). Local memory moves sectors, too:
// words at one offset are adjacent for the 32 lanes.
//
// Work of asynchronous engines is counted in bytes at the issuing instruction. Bulk copies, reductions and tensor boxes
// count their bytes of global memory. wgmma counts the operands that it reads from shared memory, B once per warpgroup.

#pragma once

#include "runtime/simulator/Program.h"

#include <mutex>

namespace kiln::simulator {

/// Counts of one step.
struct StepMetrics {
  int64_t instructions = 0;   // warp instructions
  int64_t sharedAccesses = 0; // warp accesses
  int64_t wavefronts = 0, idealWavefronts = 0;
  int64_t sharedBytes = 0;
  int64_t globalAccesses = 0;
  int64_t sectors = 0, idealSectors = 0;
  int64_t localAccesses = 0, localSectors = 0;
  int64_t bulkBytes = 0;    // between global and shared memory, by asynchronous engines
  int64_t operandBytes = 0; // read from shared memory by wgmma
  int64_t globalBytes = 0;
  /// For a wait for asynchronous copies: bytes that remain in flight after it.
  int64_t bytesInFlight = 0;

  void add(const StepMetrics &other);
};

/// The lanes' addresses in one instruction.
using LaneAddresses = std::array<char *, lanesOfWarp>;
/// Wavefronts of `lanes` for `bytes` bytes each at these places of shared memory; and the number without bank
/// conflicts.
int wavefrontsOf(const LaneAddresses &at, Mask lanes, int bytes);
int idealWavefrontsOf(const LaneAddresses &at, Mask lanes, int bytes);
/// Sectors of global memory.
int sectorsOf(const LaneAddresses &at, Mask lanes, int bytes);
/// The number of distinct bytes.
int bytesOf(const LaneAddresses &at, Mask lanes, int bytes);

/// The counts of all steps of a program. Each host thread has its own; they are added at the end of the launch.
class Metrics {
public:
  explicit Metrics(const Program &program);
  StepMetrics &at(int code, int step) { return steps[static_cast<size_t>(code)][static_cast<size_t>(step)]; }
  const StepMetrics &at(int code, int step) const {
    return steps[static_cast<size_t>(code)][static_cast<size_t>(step)];
  }
  void addAccess(StepMetrics &step, bool isShared, const LaneAddresses &at, Mask lanes, int bytes);
  /// Counts an access of local memory, which begins at `begin` with `stride` bytes per lane.
  void addLocalAccess(StepMetrics &step, const char *begin, uint64_t stride, const LaneAddresses &at, Mask lanes,
                      int bytes);
  StepMetrics total() const;
  /// Thread-safe.
  void add(const Metrics &other);

private:
  std::vector<std::vector<StepMetrics>> steps; // by code
  std::mutex mutex;
};

} // namespace kiln::simulator
