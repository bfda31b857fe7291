// The time of a launch on a GPU, predicted from the work that a kernel asks of each pipe. No GPU is needed.
//
// MachineRates has the work of each kind that an SM does in a clock. Resident programs share the pipes of an SM. The
// pipe with the most work limits an iteration of the main loop, unless the warps wait for data or for products:
//
//     overlapped = max(tensor, shared, MUFU, FP, INT, issue, L2)
//     drained    = drained products + waits · drain + issue
//     iteration  = max(overlapped, drained)
//     exposed    = max(0, latency − iterations ahead · iteration)
//     outside    = max over the pipes of the work outside the loop
//     alone      = memory latency + first operands + iterations · (iteration + exposed) + late loads + outside
//     SM         = max(programs · work of a program, alone)
//     launch     = start + max(groups of programs on the busiest SM / clock, bytes / rate of L2,
//                              bytes from memory / rate of memory)
//
// Bytes from memory: none if the data of a launch fit in `l2Kept`, because they are then in the L2 cache; otherwise
// all.
//
// `drained`: if the warps wait for all products that they issued, the tensor cores drain, and the next products are
// issued after the instructions in between. Resident programs run in lockstep: they wait for products at the same time,
// so their times add up. The prologue and the epilogue of a program are not overlapped with its own loop, only with
// other resident programs.

#pragma once

#include "dialect/dsl/Plan.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln::bench {

// --- Classes of GPU instructions, and counts by class, for comparing Kiln's kernels with those of other compilers ---

/// The pipe that an instruction uses.
enum class Class : uint8_t {
  mma,       // products of matrices
  ldmatrix,  // fragments from shared memory
  lds,       // other loads of shared memory
  sts,       // stores to it
  asyncCopy, // asynchronous copies from global to shared memory
  ldg,       // loads of global memory
  stg,       // stores to it
  atomic,    // atomics and reductions of either memory
  mufu,      // approximate functions
  fp,        // arithmetic of floats
  convert,   // between types, and permutations of bytes
  integer,   // arithmetic of integers, moves, constants
  predicate, // comparisons and selections
  barrier,
  shuffle,
  branch,
  local, // memory of a thread: spills, arrays
  other  // waits, fences, nothing
};
inline constexpr size_t classCount = 18;
inline constexpr std::array<const char *, classCount> classNames = {
    "mma", "ldsm", "lds",     "sts",       "ldgsts", "ldg",  "stg",    "atomic", "mufu",
    "fp",  "cvt",  "integer", "predicate", "bar",    "shfl", "branch", "local",  "other"};

/// The number of instructions of each class.
struct Counts {
  std::array<double, classCount> of{};
  double operator[](Class kind) const { return of[static_cast<size_t>(kind)]; }
  double &operator[](Class kind) { return of[static_cast<size_t>(kind)]; }
  double total() const {
    double all = 0;
    for (const double count : of)
      all += count;
    return all;
  }
  /// Adds `times` times the other counts.
  void add(const Counts &others, double times = 1) {
    for (size_t i = 0; i < classCount; ++i)
      of[i] += times * others.of[i];
  }
};

/// The work of a piece of code for one warp, or for a whole program.
struct Work {
  Counts counts;
  double mmaOperations = 0;     // 2 for each product of two numbers
  double groupOperations = 0;   // those of them by warpgroups: wgmma
  double drainedOperations = 0; // of groupOperations: those whose results the warps await before they issue others
  double drains = 0;            // such waits
  std::string mmaType;          // of their operands: "bf16", "f16", "tf32", "s8", "f64"; empty: none
  double wavefronts = 0;        // of shared memory, 128 bytes each at best
  double bytes = 0;             // loaded from and stored to global memory, as requested by lanes

  void add(const Work &others, double times = 1) {
    counts.add(others.counts, times);
    mmaOperations += times * others.mmaOperations;
    groupOperations += times * others.groupOperations;
    drainedOperations += times * others.drainedOperations;
    drains += times * others.drains;
    if (mmaType.empty())
      mmaType = others.mmaType;
    wavefronts += times * others.wavefronts;
    bytes += times * others.bytes;
  }
};

// --- The model ------------------------------------------------------------------------------------------------------

/// The rates of a GPU, per SM and clock.
struct MachineRates {
  const char *name;
  int sms;
  double clock;                    // a second
  double productClock;             // a second, while wgmma limits the power
  double mma16;                    // operations of mma.sync on bf16 and f16; tf32 half of it, 8-bit types twice
  double mmaGroup;                 // operations of wgmma on bf16 and f16; 0: no wgmma
  double drain;                    // clocks between the last product and the next one, for warps that wait for results
  double sharedBytes;              // read or written
  double mufu, fp, integer;        // lanes
  double issued;                   // instructions of warps
  double l2Bytes;                  // from the level-2 cache
  double l2Rate, memoryRate;       // bytes a second in all, as reached
  double l2Kept;                   // bytes that the level-2 cache keeps of one launch for the next
  double l2Latency, memoryLatency; // clocks
  double start;                    // of a launch, seconds
};
/// A100, H100 and H200.
std::span<const MachineRates> machines();

/// Clocks of an SM that each pipe needs.
struct Pipes {
  enum Kind { tensor, shared, mufu, fp, integer, issue, l2 };
  static constexpr std::array<const char *, 7> names = {"tensor", "shared", "mufu", "fp", "int", "issue", "l2"};
  std::array<double, 7> clocks{};

  Kind binding() const;
  double most() const { return clocks[binding()]; }
};
/// The clocks for the work of a whole program, or of an iteration of all its warps. `l2Bytes` is its L2 traffic.
Pipes pipesOf(const MachineRates &machine, const Work &work, double l2Bytes);

/// The exposed latency of an iteration, in clocks, for data with `latency` that is loaded `roundsAhead` iterations
/// ahead.
double exposedLatency(double latency, double roundsAhead, double round);

/// The programs that an SM holds at once, and the resource that limits them.
struct Occupancy {
  int programs = 0;
  const char *limit = "";
  int warps = 0, maxWarps = 0; // of them all; that an SM can hold
};
Occupancy occupancyOf(const GpuFacts &gpu, int registers, int64_t sharedBytes, int threads);

/// The properties of a launch on which its time depends.
struct LaunchWork {
  Work program; // on average, all warps; of the longest, if there is one for each SM
  double l2Bytes = 0;
  Work round; // of an iteration of the main loop, all warps
  double roundL2Bytes = 0;
  double rounds = 0;      // iterations of the main loop; 0: there is no loop
  double roundsAhead = 0; // iterations by which its data is loaded ahead
  bool loads = false;     // whether the loop loads from global memory
  double lateBytes = 0;   // bytes that a program with products loads outside the loop, and waits for
  int warps = 1;          // of a program
  double programs = 0;    // of the grid
  int residents = 1;      // programs that an SM holds at once
  double memoryBytes = 0; // minimum memory traffic
};

struct Prediction {
  Pipes round;            // of one program
  double iteration = 0;   // clocks, at least those of its pipes
  double exposed = 0;     // clocks an iteration, of a program alone
  const char *binds = ""; // the limit of the time: a pipe, "waits" for products, "latency", "L2 rate" or "memory"
  double seconds = 0;
  double waves = 0; // of programs on all SMs; the last one counts by the fraction that is used
};
Prediction predict(const MachineRates &machine, const LaunchWork &launch);

/// Spearman's rank correlation of two lists: 1 for equal orders, −1 for reverse orders. Equal numbers share their
/// ranks. It is 0 if all numbers of a list are equal.
double rankCorrelation(const std::vector<double> &a, const std::vector<double> &b);

} // namespace kiln::bench
