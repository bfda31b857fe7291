// The arguments of a launch, laid out as the argument block of lowering/Abi.h.

#pragma once

#include "runtime/Signature.h"

#include "llvm/ADT/SmallVector.h"

namespace kiln {

/// The slots of an argument block, 8 bytes each.
using ArgumentBlock = llvm::SmallVector<uint64_t, 96>;

/// First byte of an argument's memory; a workspace region lies in `workspace`.
inline char *dataOf(const Arg &arg, void *workspace) {
  return arg.kind == Arg::Kind::workspace ? static_cast<char *>(workspace) + arg.workspaceOffset
                                          : static_cast<char *>(arg.ref.data);
}

/// The argument block of a launch of `kernel`. Throws Error where an argument does not fit the signature.
ArgumentBlock pack(const std::string &kernel, const Signature &signature, std::array<int64_t, 3> grid,
                   const std::vector<Arg> &args, void *workspace);

/// `f32[64x32]`, or the scalar's type: an argument as messages name it.
std::string textOf(const Arg &arg);

} // namespace kiln
