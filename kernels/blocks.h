// Default tile sizes for kernels whose config is only the number of elements or rows of a program.

#pragma once

#include "dialect/dsl/Plan.h"

#include <algorithm>
#include <bit>

namespace kiln {

/// Sizes of programs that are bound by memory. `kiln-bench layernorm` compares such kernels with a copy on a CPU;
/// `kiln-bench static` counts their instructions and sectors on a GPU.
struct BlockSizes {
  int64_t cpuElements = 8192, maxCpuRows = 32; // whole rows on a CPU: enough elements to hide the cost of starting
  uint64_t minElements = 128;                  // on a GPU: one for each thread of 4 warps
  uint64_t maxElements = 1024;                 // on a GPU: 8 for each thread of 4 warps, 16 bytes of bf16
  int64_t maxWarpElements = 2048;              // of a row that one warp holds, 64 a lane
  uint64_t laneElements = 8;                   // of short rows, in each lane of a warp
  int maxWarpRows = 16;
};
inline constexpr BlockSizes blockSizes;

/// Number of elements of a program, of n in all. On a CPU it is `onCpu`, large enough to hide the cost of starting a
/// program. On a GPU it is the maximum, or fewer if SMs would be idle.
inline int pickBlock(const Target &target, int64_t n, int onCpu) {
  return target.visit([=](const CpuFacts &) { return onCpu; },
                      [=](const GpuFacts &gpu) {
                        const auto share = static_cast<uint64_t>(cdiv(std::max<int64_t>(n, 1), gpu.sms));
                        return static_cast<int>(
                            std::clamp(std::bit_ceil(share), blockSizes.minElements, blockSizes.maxElements));
                      });
}

/// Number of rows of C elements of a program on a CPU.
inline int rowsOnCpu(int64_t C) {
  return static_cast<int>(std::clamp<int64_t>(blockSizes.cpuElements / C, 1, blockSizes.maxCpuRows));
}

/// Number of rows of a program. On a CPU it is `onCpu`, large enough to hide the cost of starting a program. On a GPU
/// it is one row, which all threads share.
inline int pickRows(const Target &target, int onCpu) {
  return target.visit([=](const CpuFacts &) { return onCpu; }, [](const GpuFacts &) { return 1; });
}

/// Number of rows of a program, for a kernel that reduces each row of C elements. On a GPU each of four warps has one
/// row, which it reduces without waiting for other warps. It has more if rows are short, so that a lane loads 16 bytes
/// at a time.
inline int pickWholeRows(const Target &target, int onCpu, int64_t C) {
  return target.visit([=](const CpuFacts &) { return onCpu; },
                      [=](const GpuFacts &) {
                        if (C > blockSizes.maxWarpElements)
                          return 1;
                        const auto width = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(C, 1)));
                        const auto rows = static_cast<int>(32 * blockSizes.laneElements / width);
                        return 4 * std::clamp(rows, 1, blockSizes.maxWarpRows);
                      });
}

} // namespace kiln
