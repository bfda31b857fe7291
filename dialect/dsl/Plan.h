// Plans: the launches of an operator. A plan is a pure function of shapes, types, config and Target. Its result is
// plain data, launches and workspace bytes, which the runtime runs. This header knows neither MLIR nor the runtime.

#pragma once

#include "dialect/dsl/Kernel.h"

#include <array>
#include <variant>

namespace kiln {

/// Whether tensor cores multiply f32 operands as sums of two numbers, by three MMAs.
inline bool isSplit(Precision precision) { return precision == Precision::tf32x3 || precision == Precision::bf16x3; }

/// Facts about a CPU.
struct CpuFacts {
  int vectorBits = 256;                       // width of a native vector
  int registers = 16;                         // native vector registers
  bool tiles = false;                         // has AMX: MMAs of bf16 and i8 tiles
  int64_t l1Bytes = 32768, l2Bytes = 1 << 20; // data caches of a core
  int cores = 1;                              // programs that run concurrently
};

/// Facts about a GPU.
struct GpuFacts {
  int architecture = 80;               // compute capability times ten
  int sms = 108;                       // streaming multiprocessors
  int64_t ctaSharedBytes = 163 << 10;  // maximum shared memory of a CTA
  int64_t smSharedBytes = 164 << 10;   // shared memory of an SM, divided among its resident CTAs
  int registers = 65536;               // 4-byte registers of an SM
  int64_t l2Bytes = int64_t{40} << 20; // level-2 cache

  /// Whether it is a consumer GPU. Its tensor cores have a quarter of the throughput when they accumulate in f32.
  bool isConsumer() const { return architecture == 86 || architecture == 89 || architecture == 120; }
};

struct Arg;

/// The facts about a machine that a plan may use. A plan reads them by visit(), which requires a case for every kind of
/// machine.
struct Target {
  std::string name; // for messages only
  std::variant<CpuFacts, GpuFacts> facts;
  std::optional<Precision> precision = {}; // requested precision of f32 matmuls, if any
  bool elastic = false;                    // dynamic-shape mode: configs depend only on the shape bucket
  int64_t minRows = 1;                     // smallest bucket of rows in dynamic-shape mode

  /// The precision of matmuls of `type` that a plan uses. For f32 it is the requested one; the default is tf32 on GPUs,
  /// their only fast precision, and ieee on CPUs. On consumer GPUs three MMAs take longer than FMAs, so tf32x3 and
  /// bf16x3 become ieee there. Matmuls of other types are exact, and so ieee.
  Precision precisionOf(Type type) const;

  /// The number of rows for which a plan chooses tiles. In dynamic-shape mode it is the next power of two, at least
  /// `minRows`, so few configs serve all numbers of rows. Otherwise it is `rows`. Launches get the real number.
  int64_t bucket(int64_t rows) const;
  /// The bucket of a sequence length: the next power of two, at least 16. On a GPU it is at least 32, the smallest
  /// extent of a tile there.
  int64_t lengthBucket(int64_t length) const;
  /// The distance in rows between parts of a buffer that have at least `rows` rows each. In dynamic-shape mode it is a
  /// multiple of 64, so all parts have the alignment of the first for any row size.
  int64_t partStride(int64_t rows) const;
  /// An argument whose last extents are dynamic (rows or lengths). In dynamic-shape mode it sets `specialised` to
  /// false.
  Arg varying(Arg argument) const;

  /// Calls the visitor for this kind of facts; there is one visitor for each kind.
  template <class... Visitors> auto visit(Visitors... visitors) const {
    struct All : Visitors... {
      using Visitors::operator()...;
    };
    return std::visit(All{visitors...}, facts);
  }
};

/// Memory with a type, extents and strides, not owned. Strides count elements.
struct TensorRef {
  void *data = nullptr;
  Type type = Type::f32;
  Shape extents;
  Shape strides;
  /// The name of the device that owns the memory, one string per device (runtime/Executable.h); null: unknown. A launch
  /// on another device is an error.
  const std::string *device = nullptr;

  int rank() const { return static_cast<int>(extents.size()); }
  /// The number of elements, and their bytes. Both throw Error for negative extents and beyond 64 bits.
  int64_t count() const;
  int64_t bytes() const;
  /// Whether the elements are row-major without gaps.
  bool isDense() const;
  /// Dense row-major memory at `data`. Throws Error for extents below 0 and bytes beyond 64 bits.
  static TensorRef dense(void *data, Type type, Shape extents);
  /// Indices `begin` to `begin + extent` − 1 of dimension `axis`.
  TensorRef slice(int axis, int64_t begin, int64_t extent) const;
  /// Index `at` of dimension `axis`, which disappears.
  TensorRef select(int axis, int64_t at) const;
  /// A permutation of the dimensions.
  TensorRef permute(std::vector<int> order) const;
  /// Other extents over these elements; throws Error unless the memory is dense.
  TensorRef reshape(Shape extents) const;
};

/// One argument of a launch: a tensor, a region of the plan's workspace, or a scalar. For an optional parameter it is a
/// tensor or nothing (std::nullopt); for a list of views `Arg::list({x, y})` or a std::vector of tensors.
///
/// Any type that converts to a TensorRef is a tensor, so `{x, y, 2.0f}` is a list of arguments. A C++ number is a
/// scalar: float is f32, double and long double f64, bool boolean, every integer i64, except u64 from 2^63 on. The type
/// does not depend on the kernel: next to f32 views, write `2.0f`, not `2.0`, or use as().
struct Arg {
  enum class Kind { tensor, workspace, scalar, none, list } kind = Kind::tensor;
  TensorRef ref;               // null data for a workspace region …
  int64_t workspaceOffset = 0; // … which begins this many bytes into the workspace
  bool specialised = true;     // false: the compiler may not specialise on extents and strides that 16 divides
  Type scalarType = Type::i64;
  union {
    int64_t integer = 0; // of boolean and the integer types; for unsigned types their bits
    double real;         // of the floating-point types
  };
  std::vector<Arg> items; // of a list

  Arg(TensorRef tensor) : ref(std::move(tensor)) {}
  template <class Tensor>
    requires(!std::is_same_v<Tensor, TensorRef> && std::is_convertible_v<const Tensor &, const TensorRef &>)
  Arg(const Tensor &tensor) : ref(static_cast<const TensorRef &>(tensor)) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Arg(Number value) : kind(Kind::scalar) {
    if constexpr (std::is_floating_point_v<Number>) {
      scalarType = std::is_same_v<Number, float> ? Type::f32 : Type::f64;
      real = static_cast<double>(value);
    } else {
      integer = static_cast<int64_t>(value);
      const bool isHuge = std::is_unsigned_v<Number> && integer < 0;
      scalarType = std::is_same_v<Number, bool> ? Type::boolean : isHuge ? Type::u64 : Type::i64;
    }
  }
  Arg(std::nullopt_t) : kind(Kind::none) {}
  template <class Tensor>
    requires std::is_convertible_v<const Tensor &, const TensorRef &>
  Arg(const std::optional<Tensor> &tensor) : Arg(tensor ? Arg(*tensor) : Arg(std::nullopt)) {}
  template <class Tensor>
    requires std::is_convertible_v<const Tensor &, const TensorRef &>
  Arg(const std::vector<Tensor> &tensors) : kind(Kind::list), items(tensors.begin(), tensors.end()) {}
  static Arg list(std::vector<Arg> tensors);
  static Arg workspace(int64_t offset, Type type, Shape extents);

  /// Whether it is memory: a tensor or a region.
  bool isView() const { return kind == Kind::tensor || kind == Kind::workspace; }
  /// This scalar with another type: `Arg(3).as(i32)`, `Arg(0.5).as(bf16)`. Floats round to nearest. Throws Error for a
  /// tensor, and for a number that the integer type cannot represent.
  Arg as(Type type) const;
};

/// Extents of a launch grid: `8`, `{8, 4}` or `{8, 4, 2}`. Other axes have one program. An extent may be 0.
struct Grid : std::array<int64_t, 3> {
  constexpr Grid(int64_t x = 1, int64_t y = 1, int64_t z = 1) : array{x, y, z} {}
};
/// An argument in messages: `f32[64x32]`, the type of a scalar, `nothing`, or `a list of 2`.
std::string textOf(const Arg &arg);

/// A Grid, for places where C++ needs a type.
constexpr Grid programs(int64_t x, int64_t y = 1, int64_t z = 1) { return {x, y, z}; }

/// One launch: `grid` programs of a kernel specialised by `config`.
struct Launch {
  const Kernel *kernel = nullptr;
  std::string config; // `name=value,…`
  Grid grid;
  std::vector<Arg> args; // in the order of the kernel's parameters
  double flops = 0;      // of its matmuls: two per FMA
  std::string label;     // its place in a network, for messages only

  /// A grid, its arguments, and the FLOPs of its matmuls. The fields of the launch include those of all problems.
  struct Problem {
    Grid grid;
    std::vector<Arg> args;
    double flops = 0;
  };
  /// Further problems of a grouped launch, with this kernel and config: see grouped().
  std::vector<Problem> others = {};

  /// Bytes of all tensors and regions, each counted as often as it is passed: the traffic if each is accessed once.
  int64_t bytes() const;
};

/// Launches that run in order, and the size of the workspace (scratch memory) that they share.
struct Plan {
  std::vector<Launch> launches;
  int64_t workspaceBytes = 0;

  /// Appends another plan. Both use one workspace, one after the other.
  Plan &operator+=(const Plan &other);
};

/// A kernel without optional views and lists, and its arguments, each view on its own.
struct Expanded {
  const Kernel *kernel;
  std::vector<Arg> args;
};
/// The form of a kernel for the numbers of views in `args`; a kernel without optional views and lists is returned as it
/// is. Throws Error with the argument that does not fit.
Expanded expanded(const Kernel &kernel, const std::vector<Arg> &args);
/// The launch of the expanded kernel. Throws Error also if its problems differ in their numbers of views.
Launch expanded(const Launch &launch);
Plan expanded(const Plan &plan);

/// Grouped launches: merges independent launches into fewer. No launch may read or write memory that another writes.
/// - Launches with one kernel, config, and argument types and ranks become one, as long as their arguments fit a GPU
///   launch. It has the label and the position of the first.
/// - A GPU has the programs of all problems in one grid, so no launch waits for the slowest program of the one before.
///   A CPU runs the problems in order.
/// - Extents that the kernel reads by View::extent must be equal in all problems.
std::vector<Launch> grouped(const std::vector<Launch> &launches);
/// The inverse of grouped(): a plan with one launch per problem.
Plan ungrouped(const Plan &plan);

/// The examples of a batch: `all` has them along dimension `axis`. Without an axis all examples share the tensor.
struct Batched {
  TensorRef all;
  std::optional<int> axis;
};

/// The batched plan. `one` makes the plan of one example from its tensors; it is called for the first example.
/// - Each launch of that plan becomes one launch for all examples. Each example has its own workspace.
/// - A batch of no examples launches nothing.
/// Throws Error:
/// - unless all batched tensors have equally many examples;
/// - if a shared tensor begins within the first example of a batched one;
/// - if a launch uses several batched tensors whose examples have different layouts.
Plan vmap(const std::function<Plan(const std::vector<TensorRef> &)> &one, const std::vector<Batched> &tensors,
          Loc loc = here());

} // namespace kiln
