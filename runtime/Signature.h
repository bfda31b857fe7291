// What a compiled kernel expects of its arguments, and how they are laid out in the argument block of lowering/Abi.h.
//
// A dimension or stride that the specialisation fixed has no slot in the block: it is compared with the argument's own
// when a launch packs its arguments, so that a launch with other arguments than those compiled for is an error.

#pragma once

#include "dialect/dsl/Plan.h"

#include "llvm/ADT/SmallVector.h"

#include <limits>

namespace kiln {

/// The parameters of one compiled kernel.
struct Signature {
  /// An extent or stride that is known only at launch and has a slot.
  static constexpr int64_t dynamic = std::numeric_limits<int64_t>::min();

  struct Parameter {
    bool isView = true;
    Type type = Type::f32;
    Shape extents, strides; // views only
  };
  std::vector<Parameter> parameters;
};

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
