// The number of threads of a program, and limits of its registers and shared memory.

#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <algorithm>

namespace kiln::lowering::gpu {

/// The fewest warps that gpu-choose-warps gives a kernel, and the most that a program may have.
inline constexpr int64_t usualWarps = 4, maxWarps = 32;

/// The minimum number of resident programs (CTAs) per SM, `tile.programs`. It limits the registers of a thread.
inline int64_t minCtasPerSm(mlir::func::FuncOp func) {
  auto programs = func->getAttrOfType<mlir::IntegerAttr>("tile.programs");
  return programs ? programs.getInt() : 1;
}

/// The registers of a thread if that many programs are resident on an SM (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability"). Values beyond them are spilled to memory.
inline int64_t registersOfThread(int64_t warps, int64_t programs) {
  constexpr int64_t registersOfSm = 65536, most = 255;
  return std::min(most, registersOfSm / (32 * warps * programs));
}

/// The maximum number of values of a tile in a thread. Each value has its own instructions.
inline constexpr int64_t maxValues = 1024;
/// The maximum number of elements of a tile, for the largest program.
inline constexpr int64_t maxElements = maxValues * maxWarps * 32;

/// Up to this size, shared memory is declared in PTX (static). Beyond it, it is dynamic: the launch states its size
/// (CUDA C++ Programming Guide, "Shared Memory").
inline constexpr int64_t maxStaticShared = 48 << 10;

/// The warps of a program: `tile.warps`, a power of two (gpu-coalesce-accesses checks that), or the default.
inline int64_t warpsOf(mlir::func::FuncOp func) {
  auto warps = func->getAttrOfType<mlir::IntegerAttr>("tile.warps");
  return warps ? warps.getInt() : usualWarps;
}

} // namespace kiln::lowering::gpu
