// What a launch did, by step of the program: instructions, and the memory traffic that hardware would make of its
// accesses. It is no time: latencies, caches and occupancy are not modelled.
//
// Shared memory has 32 banks of 4 bytes. Accesses of 4 bytes a lane or less go in one pass of 32 lanes, of 8 bytes in
// two of 16, of 16 bytes (and the rows of ldmatrix and stmatrix) in passes of 8. A pass takes as many *wavefronts* as
// the most distinct words that it wants of one bank. Global memory moves *sectors* of 32 bytes: those that the lanes
// touch. Bytes are those that the lanes of an access touch, each counted once: 128 of them fill a wavefront. Local memory
// moves sectors, too: words at one offset in the memory of 32 lanes lie together.
//
// What asynchronous units move is counted in bytes, at the instruction that begins it: bulk copies and reductions, and
// boxes of tensors, as they cross global memory; the operands that wgmma reads from shared memory, B once a warpgroup.

#pragma once

#include "runtime/simulator/Program.h"

#include <mutex>

namespace kiln::simulator {

/// Counts of one step.
struct StepMetrics {
  int64_t instructions = 0;   // of warps
  int64_t sharedAccesses = 0; // of warps
  int64_t wavefronts = 0, idealWavefronts = 0;
  int64_t sharedBytes = 0;
  int64_t globalAccesses = 0;
  int64_t sectors = 0, idealSectors = 0;
  int64_t localAccesses = 0, localSectors = 0;
  int64_t bulkBytes = 0;    // copied between global and shared memory by asynchronous units
  int64_t operandBytes = 0; // of shared memory that wgmma reads
  int64_t globalBytes = 0;
  /// Of a wait for asynchronous copies: bytes that lanes have still under way behind it.
  int64_t bytesInFlight = 0;

  void add(const StepMetrics &other);
};

/// The lanes' addresses of one instruction.
using LaneAddresses = std::array<char *, lanesOfWarp>;
/// Wavefronts that `lanes` take for `bytes` bytes each at these places of shared memory; and if they met no conflict.
int wavefrontsOf(const LaneAddresses &at, Mask lanes, int bytes);
int idealWavefrontsOf(const LaneAddresses &at, Mask lanes, int bytes);
/// Sectors that they touch of global memory; and the fewest that hold as many distinct bytes.
int sectorsOf(const LaneAddresses &at, Mask lanes, int bytes);
int idealSectorsOf(const LaneAddresses &at, Mask lanes, int bytes);
/// Distinct bytes that they touch.
int bytesOf(const LaneAddresses &at, Mask lanes, int bytes);

/// Counts of all steps of a program. A thread of the host has its own, which is added to the launch's at the end.
class Metrics {
public:
  explicit Metrics(const Program &program);
  StepMetrics &at(int code, int step) { return steps[static_cast<size_t>(code)][static_cast<size_t>(step)]; }
  const StepMetrics &at(int code, int step) const {
    return steps[static_cast<size_t>(code)][static_cast<size_t>(step)];
  }
  void addAccess(StepMetrics &step, bool isShared, const LaneAddresses &at, Mask lanes, int bytes);
  /// Of local memory, which begins at `begin`, every lane's `stride` bytes behind the one before.
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
