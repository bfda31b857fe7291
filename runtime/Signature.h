// The arguments that a compiled kernel accepts.
//
// An extent or stride that is fixed by the specialisation has no slot in the argument block (lowering/Abi.h). A launch
// compares it, and every fact that the code relies on, with the arguments when it packs them.

#pragma once

#include "dialect/dsl/Plan.h"
#include "lowering/Abi.h"

#include <limits>
#include <set>

namespace kiln {

/// The arguments that the code of a kernel uses.
struct ArgumentUses {
  std::set<std::pair<int, int>> staticExtents; // (argument, dimension)
  std::set<int> used, written;                 // arguments; the code accesses no others
};

/// The parameters of one compiled kernel.
struct Signature {
  /// Marks an extent or stride that is known only at launch and has a slot.
  static constexpr int64_t dynamic = std::numeric_limits<int64_t>::min();

  /// One parameter; `name` is empty if the registration names no arguments.
  struct Parameter {
    std::string name;
    bool isView = true;
    Type type = Type::f32;
    // Views only: the facts that the code may rely on (ArgFacts in dialect/dsl/Trace.h).
    Shape extents, strides;
    int64_t alignment = 1;
    bool stridesBy16 = false, extentBy16 = false, fits32 = false;
    bool read = true, written = true; // the kernel may read from it, and may write to it
  };
  /// Two extents that must be equal.
  struct EqualExtents {
    int first, firstAxis, second, secondAxis; // arguments and their axes
  };
  std::string where; // the registration's `file:line`; empty if unknown
  std::vector<Parameter> parameters;
  std::vector<abi::Slot> slots;              // of one problem, after the grid
  std::vector<std::pair<int, int>> disjoint; // views that must not overlap
  std::vector<EqualExtents> equalExtents;    // that have slots
  int problems = 1;                          // problems of a grouped launch

  /// The number of slots of a whole block. On a GPU a block of several problems begins with the launch's grid, with all
  /// programs along x. The block of each problem follows. Programs of a problem are numbered in order.
  size_t words() const {
    const size_t each = abi::gridSlots + slots.size();
    return problems == 1 ? each : abi::gridSlots + static_cast<size_t>(problems) * each;
  }
};

} // namespace kiln
