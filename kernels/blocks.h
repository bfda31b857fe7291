// Default tile sizes for kernels whose config is only the number of elements or rows of a program.

#pragma once

#include "dialect/dsl/Plan.h"

#include <algorithm>
#include <bit>

namespace kiln {

/// Number of elements of a program, of n in all. On a CPU it is `onCpu`, large enough to hide the cost of starting a
/// program. On a GPU it is 8 elements for each thread of 4 warps (16 bytes of bf16), or fewer if SMs would be idle.
inline int pickBlock(const Target &target, int64_t n, int onCpu) {
  return target.visit([=](const CpuFacts &) { return onCpu; },
                      [=](const GpuFacts &gpu) {
                        const auto share = static_cast<uint64_t>(cdiv(std::max<int64_t>(n, 1), gpu.sms));
                        return static_cast<int>(std::clamp<uint64_t>(std::bit_ceil(share), 128, 1024));
                      });
}

/// Number of rows of a program. On a CPU it is `onCpu`, large enough to hide the cost of starting a program. On a GPU
/// it is one row, which all threads share.
inline int pickRows(const Target &target, int onCpu) {
  return target.visit([=](const CpuFacts &) { return onCpu; }, [](const GpuFacts &) { return 1; });
}

/// The longest row that one warp holds (64 elements a lane), so that it reduces the row without waiting for other
/// warps.
inline constexpr int64_t maxOfWarp = 2048;

/// Number of rows of a program, for a kernel that reduces each row of C elements. On a GPU each of four warps has one
/// row. It has more if rows are short, so that a lane loads 16 bytes at a time.
inline int pickWholeRows(const Target &target, int onCpu, int64_t C) {
  return target.visit([=](const CpuFacts &) { return onCpu; },
                      [=](const GpuFacts &) {
                        if (C > maxOfWarp)
                          return 1;
                        const auto width = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(C, 1)));
                        return 4 * static_cast<int>(std::clamp<uint64_t>(256 / width, 1, 16));
                      });
}

} // namespace kiln
