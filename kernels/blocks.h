// Default tile sizes for kernels whose only choice is the number of elements or rows a program.

#pragma once

#include "dialect/dsl/Plan.h"

#include <algorithm>
#include <bit>

namespace kiln {

/// Elements a program, of n. On a CPU `onCpu`, so that fetching the next program is cheap in comparison. On a GPU 8
/// elements a thread of 4 warps (16 bytes of bf16), and fewer if SMs would be idle.
inline int pickBlock(const Target &target, int64_t n, int onCpu) {
  return target.visit([=](const CpuFacts &) { return onCpu; },
                      [=](const GpuFacts &gpu) {
                        const auto share = static_cast<uint64_t>(cdiv(std::max<int64_t>(n, 1), gpu.sms));
                        return static_cast<int>(std::clamp<uint64_t>(std::bit_ceil(share), 128, 1024));
                      });
}

/// Rows a program. On a CPU `onCpu`, so that fetching the next program is cheap in comparison. On a GPU one row, which
/// all threads share.
inline int pickRows(const Target &target, int onCpu) {
  return target.visit([=](const CpuFacts &) { return onCpu; }, [](const GpuFacts &) { return 1; });
}

/// The widest row that one warp holds, 64 elements a lane, and reduces without waiting for other warps.
inline constexpr int64_t mostOfWarp = 2048;

/// Rows a program of a kernel that reduces each row of C elements. On a GPU one for each of four warps, and more if
/// rows are short, so that a lane loads 16 bytes at a time.
inline int pickWholeRows(const Target &target, int onCpu, int64_t C) {
  return target.visit([=](const CpuFacts &) { return onCpu; },
                      [=](const GpuFacts &) {
                        if (C > mostOfWarp)
                          return 1;
                        const auto width = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(C, 1)));
                        return 4 * static_cast<int>(std::clamp<uint64_t>(256 / width, 1, 16));
                      });
}

} // namespace kiln
