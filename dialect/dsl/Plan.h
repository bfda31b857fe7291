// Plans: what an operator launches. A plan is a pure function from shapes, types, config and Target to launches and
// workspace bytes; it is plain data that the runtime runs. No MLIR, no runtime here.

#pragma once

#include "dialect/dsl/Kernel.h"

#include <array>
#include <variant>

namespace kiln {

/// Whether tensor cores multiply factors of f32 as sums of two numbers, by three products.
inline bool isSplit(Precision precision) { return precision == Precision::tf32x3 || precision == Precision::bf16x3; }

/// What is known of a CPU.
struct CpuFacts {
  int vectorBits = 256;                       // width of a native vector
  int registers = 16;                         // native vector registers
  bool tiles = false;                         // it multiplies tiles of bf16 and i8 (AMX)
  int64_t l1Bytes = 32768, l2Bytes = 1 << 20; // data caches of a core
  int cores = 1;                              // programs that run at once
};

/// What is known of a GPU.
struct GpuFacts {
  int architecture = 80;               // compute capability, times ten
  int sms = 108;                       // streaming multiprocessors
  int64_t ctaSharedBytes = 163 << 10;  // shared memory that a program may use
  int64_t smSharedBytes = 164 << 10;   // shared memory of an SM, which its programs divide
  int registers = 65536;               // 4-byte registers of an SM
  int64_t l2Bytes = int64_t{40} << 20; // level-2 cache

  /// Whether it is made for graphics: tensor cores that sum in f32 have a quarter of the rate of others then.
  bool isForGraphics() const { return architecture == 86 || architecture == 89 || architecture == 120; }
};

struct Arg;

/// What a plan may know of the machine: the facts of its kind. A plan visits them, so that it has an answer for every
/// kind there is, and compares no names.
struct Target {
  std::string name; // for people
  std::variant<CpuFacts, GpuFacts> facts;
  std::optional<Precision> precision = {}; // of products of f32, where somebody asks for one
  bool elastic = false;  // rows and lengths vary from plan to plan: what is picked depends on their buckets alone
  int64_t leastRows = 1; // of an elastic target: fewer are of the same bucket

  /// The precision of products of `type` that a plan chooses: the one asked for, else tf32 on GPUs, which have no other
  /// fast one, and ieee on CPUs. Where tensor cores are made for graphics, three products take longer than
  /// multiply-adds: tf32x3 and bf16x3 are ieee there. Products of other types are exact, and so ieee.
  Precision precisionOf(Type type) const;

  /// So many rows as a plan that picks tiles sees them: on an elastic target the next power of two from `leastRows` on,
  /// so that few configs serve all numbers of rows, else as they are. Launches have the real numbers.
  int64_t bucket(int64_t rows) const;
  /// The same of the length of a sequence, of which a tile is as long as there are few: powers of two from 16 on, and
  /// on a GPU from 32.
  int64_t lengthBucket(int64_t length) const;
  /// From how many rows on the next part of a buffer begins that has at least as many in each: on an elastic target a
  /// multiple of 64, so that all parts are aligned as the first is, whatever a row takes.
  int64_t rowsApart(int64_t rows) const;
  /// An argument whose last extents are numbers of rows or lengths: on an elastic target one that is not told.
  Arg varying(Arg argument) const;

  /// The result of the visitor that takes facts of this kind, one for each kind.
  template <class... Visitors> auto visit(Visitors... visitors) const {
    struct All : Visitors... {
      using Visitors::operator()...;
    };
    return std::visit(All{visitors...}, facts);
  }
};

/// Memory with a type, extents and strides, owned elsewhere. Strides count elements.
struct TensorRef {
  void *data = nullptr;
  Type type = Type::f32;
  Shape extents;
  Shape strides;

  int rank() const { return static_cast<int>(extents.size()); }
  /// Elements, and the bytes that so many take; both throw Error for negative extents and beyond 64 bits.
  int64_t count() const;
  int64_t bytes() const;
  /// Whether the elements lie in row-major order without gaps.
  bool isDense() const;
  /// Dense row-major memory at `data`. Throws Error for extents below 0 and bytes beyond 64 bits.
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
///
/// Whatever converts to a TensorRef is a tensor, so that `{x, y, 2.0f}` is a list of arguments. A C++ number is a
/// scalar of the type nearest to its own: float gives f32, double and long double f64, bool a boolean, and every
/// integer i64, but u64 from 2^63 on. Nothing is guessed from the kernel: with an f32 view, write `2.0f` and not `2.0`,
/// or as().
struct Arg {
  enum class Kind { tensor, workspace, scalar } kind = Kind::tensor;
  TensorRef ref;               // a workspace region has no data here …
  int64_t workspaceOffset = 0; // … but begins this many bytes into the workspace
  bool told = true;            // whether the compiler may know that 16 divides extents and strides
  Type scalarType = Type::i64;
  union {
    int64_t integer = 0; // of boolean and the integer types; the bits of one that is unsigned
    double real;         // of the floating-point types
  };

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
  static Arg workspace(int64_t offset, Type type, Shape extents);

  /// This scalar as one of another type: `Arg(3).as(i32)`, `Arg(0.5).as(bf16)`. Floats are rounded to nearest. Throws
  /// Error for a tensor, and for a number that an integer type does not have.
  Arg as(Type type) const;
};

/// Extents of a launch grid, from 0: `8`, `{8, 4}` or `{8, 4, 2}`. Axes that are not named have one program.
struct Grid : std::array<int64_t, 3> {
  constexpr Grid(int64_t x = 1, int64_t y = 1, int64_t z = 1) : array{x, y, z} {}
};
/// The same where a type must be named.
constexpr Grid programs(int64_t x, int64_t y = 1, int64_t z = 1) { return {x, y, z}; }

/// One launch: `grid` programs of a kernel specialised by `config`.
struct Launch {
  const Kernel *kernel = nullptr;
  std::string config; // `name=value,…`
  Grid grid;
  std::vector<Arg> args; // in the order of the kernel's parameters
  double flops = 0;      // of its matrix products: two for each multiply-add
  std::string label;     // its place in a network, for people: nothing else depends on it

  /// Programs, their arguments, and the operations of their products, which those of the launch include.
  struct Problem {
    Grid grid;
    std::vector<Arg> args;
    double flops = 0;
  };
  /// What it does besides, with the same kernel and config: see grouped().
  std::vector<Problem> others = {};

  /// Bytes of all views and regions that it is given, each as often as it is: what it moves when it goes through every
  /// one of them once.
  int64_t bytes() const;
};

/// Launches that run one after the other, and the bytes of scratch memory that they share.
struct Plan {
  std::vector<Launch> launches;
  int64_t workspaceBytes = 0;

  /// Appends another plan; both use the same workspace, one after the other.
  Plan &operator+=(const Plan &other);
};

/// Launches of which none reads or writes what another writes, as few: those with the same kernel and config, and
/// arguments of the same types and ranks, become one that does the work of all, whose label and place are the first
/// one's, as long as their arguments fit a GPU's launch. A GPU has the programs of all at once, and those of the last
/// do not wait for the slowest of the first; a CPU launches them one after the other. Extents that the kernel asks for
/// (View::extent) must be the same in all.
std::vector<Launch> grouped(const std::vector<Launch> &launches);
/// The plan with a launch of its own for all that its launches do.
Plan ungrouped(const Plan &plan);

/// The examples of a batch: `all` of them along dimension `axis`, or without one what they have together.
struct Batched {
  TensorRef all;
  std::optional<int> axis;
};

/// The plan for a batch of examples. `one` makes that of one example from its tensors, and is asked for the first one;
/// what its launches do with memory of an example's tensors, or of the workspace, they do for each example. All
/// launches for one step of the plan are one launch, and each example has a workspace of its own. Nothing is launched
/// for no examples. Throws Error unless all batched tensors have as many examples, where a tensor that all examples
/// have together begins within the first example of another, and where a launch has memory of several batched tensors
/// whose examples lie differently.
Plan vmap(const std::function<Plan(const std::vector<TensorRef> &)> &one, const std::vector<Batched> &tensors,
          Loc loc = here());

/// a / b rounded up.
constexpr int64_t ceildiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace kiln
