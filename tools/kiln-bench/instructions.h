// Classes of GPU instructions, and counts by class, for comparing Kiln's kernels with those of other compilers.

#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace kiln::bench {

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

} // namespace kiln::bench
