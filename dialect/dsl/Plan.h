// Plans: what an operator launches. A plan is a pure function from shapes, types, config and Target to launches and
// workspace bytes; it is plain data that the runtime runs. No MLIR, no runtime here.

#pragma once

#include "dialect/dsl/Kernel.h"

#include <array>

namespace kiln {

/// What a plan may know of the machine.
struct Target {
  std::string name;        // "x86-64-v4", "sm_90a", …
  int vectorBits = 256;    // width of a native vector
  int registers = 16;      // native vector registers
  int64_t sharedBytes = 0; // shared memory a program may use; on a CPU the bytes of level-2 cache a core has
  int64_t l1Bytes = 32768; // level-1 data cache of a core
  int sms = 1;             // programs that run at once: SMs, or threads
  bool isCpu() const { return name.rfind("sm_", 0) != 0; }
};

/// Memory with a type, extents and strides, owned elsewhere. Strides count elements.
struct TensorRef {
  void *data = nullptr;
  Type type = Type::f32;
  Shape extents;
  Shape strides;

  int rank() const { return static_cast<int>(extents.size()); }
  int64_t count() const;
  /// Dense row-major memory at `data`.
  static TensorRef dense(void *data, Type type, Shape extents);
  /// Rows `begin` … `begin + extent` of dimension `axis`.
  TensorRef slice(int axis, int64_t begin, int64_t extent) const;
  /// Index `at` of dimension `axis`, which disappears.
  TensorRef select(int axis, int64_t at) const;
  /// Dimensions in another order.
  TensorRef permute(std::vector<int> order) const;
  /// Other extents over the same elements; throws Error unless the memory is dense.
  TensorRef reshape(Shape extents) const;
};

/// One argument of a launch: a tensor, a region of the plan's workspace, or a scalar.
struct Arg {
  enum class Kind { tensor, workspace, scalar } kind = Kind::tensor;
  TensorRef ref;               // a workspace region has no data here …
  int64_t workspaceOffset = 0; // … but begins this many bytes into the workspace
  Type scalarType = Type::i64; // f32, f64, i32 or i64
  union {
    int64_t integer = 0;
    double real;
  };

  Arg(TensorRef tensor) : ref(std::move(tensor)) {}
  Arg(float value) : kind(Kind::scalar), scalarType(Type::f32), real(value) {}
  Arg(int64_t value) : kind(Kind::scalar), scalarType(Type::i64), integer(value) {}
  Arg(int value) : Arg(static_cast<int64_t>(value)) {}
  static Arg workspace(int64_t offset, Type type, Shape extents);
};

/// Extents of a launch grid; axes that are not named have one program.
constexpr std::array<int64_t, 3> programs(int64_t x, int64_t y = 1, int64_t z = 1) { return {x, y, z}; }

/// One launch: `grid` programs of a kernel specialised by `config`.
struct Launch {
  const Kernel *kernel = nullptr;
  std::string config; // `name=value,…`
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::vector<Arg> args; // in the order of the kernel's parameters
};

/// Launches that run one after the other, and the bytes of scratch memory that they share.
struct Plan {
  std::vector<Launch> launches;
  int64_t workspaceBytes = 0;

  /// Appends another plan; both use the same workspace, one after the other.
  Plan &operator+=(const Plan &other);
};

/// a / b rounded up.
constexpr int64_t ceildiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace kiln
