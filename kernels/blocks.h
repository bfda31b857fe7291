// How much of a vector or of rows a program takes, for the kernels whose only choice that is.

#pragma once

#include "dialect/dsl/Plan.h"

#include <algorithm>
#include <bit>

namespace kiln {

/// Elements of n that a program takes: on a CPU `onCpu`, so that fetching the next program costs little beside it. On a
/// GPU 8 a thread of 4 warps, which is 16 bytes at a time even of bf16, and fewer where SMs would be without work.
inline int pickBlock(const Target &target, int64_t n, int onCpu) {
  return target.visit([=](const CpuFacts &) { return onCpu; },
                      [=](const GpuFacts &gpu) {
                        const auto share = static_cast<uint64_t>(cdiv(std::max<int64_t>(n, 1), gpu.sms));
                        return static_cast<int>(std::clamp<uint64_t>(std::bit_ceil(share), 128, 1024));
                      });
}

/// Rows that a program takes: on a CPU `onCpu`, so that fetching the next program costs little beside them; on a GPU
/// one, which its threads share.
inline int pickRows(const Target &target, int onCpu) {
  return target.visit([=](const CpuFacts &) { return onCpu; }, [](const GpuFacts &) { return 1; });
}

/// The widest row that a warp holds by itself, 64 values a lane. It reduces such a row without waiting for others.
inline constexpr int64_t mostOfWarp = 2048;

/// Rows of a program that reduces each of them, C wide: on a GPU one for each of its four warps, and more of short
/// ones, so that a lane has 16 bytes at a time.
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
