// Packs the arguments of a launch into the argument block of lowering/Abi.h.

#pragma once

#include "runtime/Executable.h"

#include "llvm/ADT/SmallVector.h"

namespace kiln {

/// The slots of an argument block, 8 bytes each.
using ArgumentBlock = llvm::SmallVector<uint64_t, 96>;

/// The number of programs in the grid at the begin of a block.
inline int64_t programsOf(const uint64_t *block) { return static_cast<int64_t>(block[0] * block[1] * block[2]); }

/// The first byte of an argument's memory; a workspace region is inside `workspace`.
inline char *dataOf(const Arg &arg, void *workspace) {
  return arg.kind == Arg::Kind::workspace ? static_cast<char *>(workspace) + arg.workspaceOffset
                                          : static_cast<char *>(arg.ref.data);
}

/// A parameter in messages: `f32[?x64]` or `f32 scalar`.
std::string textOf(const Signature::Parameter &parameter);

/// Validates arguments before anything else is computed from them. Throws Error unless all of these hold:
/// - There are as many as the kernel has, with tensors and scalars in the right places.
/// - Every tensor has a stride for each extent, extents of at least 0, and memory unless it has no elements.
/// - Byte counts and addresses fit 64 bits.
void checkArguments(const Kernel &kernel, const std::vector<Arg> &args, void *workspace);

/// The argument block of a launch. Throws Error for negative grid extents, for those beyond 2^40, and for 2^63 programs
/// or more. Throws Error for an argument that is invalid, is on another device, or does not fit the signature.
ArgumentBlock pack(const Executable &executable, Grid grid, const std::vector<Arg> &args, void *workspace);

/// The block of a launch with all of its problems. Throws Error as the other pack().
ArgumentBlock pack(const Executable &executable, const Launch &launch, void *workspace);

/// Throws Error for a grid that no GPU can launch.
void checkGpuGrid(const Executable &executable, const uint64_t *block);

} // namespace kiln
