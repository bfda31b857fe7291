// What a compiled kernel expects of its arguments.
//
// A dimension or stride that the specialisation fixed has no slot in the argument block of lowering/Abi.h; it, and
// every fact that the code was made for, is compared with the argument's own when a launch packs its arguments.

#pragma once

#include "dialect/dsl/Plan.h"
#include "lowering/Abi.h"

#include <limits>

namespace kiln {

/// The parameters of one compiled kernel.
struct Signature {
  /// An extent or stride that is known only at launch and has a slot.
  static constexpr int64_t dynamic = std::numeric_limits<int64_t>::min();

  struct Parameter {
    std::string name; // empty when the kernel's registration names no arguments
    bool isView = true;
    Type type = Type::f32;
    // Views only: these, and what else the code may rely on (see ArgFacts in dialect/dsl/Trace.h).
    Shape extents, strides;
    int64_t alignment = 1;
    bool stridesBy16 = false, extentBy16 = false, fits32 = false;
    bool written = true; // the kernel may write to it
  };
  std::string where; // the line of the kernel's registration, `file:line`; empty where nobody knows
  std::vector<Parameter> parameters;
  std::vector<abi::Slot> slots;              // of a problem's argument block, after the grid
  std::vector<std::pair<int, int>> disjoint; // views that must not overlap
  int problems = 1;                          // that a launch has arguments for

  /// The slots of a launch's whole block. That of several problems, on a GPU, begins with the launch's grid, all
  /// programs along x, and then has the block of each problem in turn; the programs of a problem are in the order of
  /// their numbers.
  size_t words() const {
    const size_t each = abi::gridSlots + slots.size();
    return problems == 1 ? each : abi::gridSlots + static_cast<size_t>(problems) * each;
  }
};

} // namespace kiln
