// The arguments of a launch, laid out as the argument block of lowering/Abi.h.

#pragma once

#include "runtime/Executable.h"

#include "llvm/ADT/SmallVector.h"

namespace kiln {

/// The slots of an argument block, 8 bytes each.
using ArgumentBlock = llvm::SmallVector<uint64_t, 96>;

/// The programs of the grid that a block begins with.
inline int64_t programsOf(const uint64_t *block) { return static_cast<int64_t>(block[0] * block[1] * block[2]); }

/// First byte of an argument's memory; a workspace region lies in `workspace`.
inline char *dataOf(const Arg &arg, void *workspace) {
  return arg.kind == Arg::Kind::workspace ? static_cast<char *>(workspace) + arg.workspaceOffset
                                          : static_cast<char *>(arg.ref.data);
}

/// Throws Error unless these can be arguments of the kernel: as many, tensors and scalars where it wants them, and
/// every tensor with a stride for each extent, extents from 0, memory unless it has no elements, and no byte count or
/// address beyond 64 bits. Nothing else may be computed from arguments before this has looked at them.
void checkArguments(const Kernel &kernel, const std::vector<Arg> &args, void *workspace);

/// The argument block of a launch of `kernel`. Throws Error for a grid with negative extents, one beyond 2^40, or 2^63
/// programs, and where an argument cannot be one or does not fit the signature.
ArgumentBlock pack(const std::string &kernel, const Signature &signature, Grid grid, const std::vector<Arg> &args,
                   void *workspace);

/// The block of a launch, of all of its problems where it has several. Throws Error as pack() for one does.
ArgumentBlock pack(const Signature &signature, const Launch &launch, void *workspace);

/// Throws Error for a block whose grid no GPU takes.
void checkGpuGrid(const Executable &executable, const uint64_t *block);

/// `f32[64x32]`, or the scalar's type: an argument as messages name it.
std::string textOf(const Arg &arg);

} // namespace kiln
