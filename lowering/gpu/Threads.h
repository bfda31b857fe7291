// How many threads a program has, and how its shared memory is asked for.

#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace kiln::lowering::gpu {

/// The fewest warps that gpu-choose-warps gives a kernel, and the most that a program may have.
inline constexpr int64_t usualWarps = 4, mostWarps = 32;

/// Programs that an SM is to hold at least, `tile.programs`: threads have no more registers than that leaves them.
inline int64_t programsOf(mlir::func::FuncOp func) {
  auto programs = func->getAttrOfType<mlir::IntegerAttr>("tile.programs");
  return programs ? programs.getInt() : 1;
}

/// Values of a tile that a thread may hold. An instruction is spelled for each; most threads have 255 registers, and
/// what is beyond goes to memory.
inline constexpr int64_t mostValues = 1024;
/// What the threads of the largest program may hold of a tile.
inline constexpr int64_t mostElements = mostValues * mostWarps * 32;

/// Shared memory of a program beyond this has no size in PTX and is asked for at the launch (CUDA C++ Programming
/// Guide, "Shared Memory").
inline constexpr int64_t mostStaticShared = 48 << 10;

/// The warps of a program: `tile.warps`, a power of two (gpu-coalesce-accesses looks), or the usual number.
inline int64_t warpsOf(mlir::func::FuncOp func) {
  auto warps = func->getAttrOfType<mlir::IntegerAttr>("tile.warps");
  return warps ? warps.getInt() : usualWarps;
}

} // namespace kiln::lowering::gpu
