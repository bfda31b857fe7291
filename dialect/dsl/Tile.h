// The kernel API of the tile language.
//
// A kernel is a C++ function over views (memory) and tiles (values). Calling the function once *traces* it: each call
// below records an operation of the MLIR dialect `tile`.
//
//     void add(View x, View y, View out, AddConfig cfg) {
//       Tile n = program_id(0) * cfg.block;
//       store(out, {n}, load(x, {n}, {cfg.block}) + load(y, {n}, {cfg.block}));
//     }
//
// Compile time and run time:
// - Host values (int, bool, config structs) are compile-time constants, like `tl.constexpr` in Triton.
// - A C++ `for` unrolls and a C++ `if` is decided while tracing. `range` and `if_` make a loop and a branch in the IR.
// - A `Tile` is a variable: assignment rebinds it. A tile that a loop body assigns is loop-carried.
// - `auto x = acc;` copies the present value.
//
// Types and shapes:
// - Mixed operands are promoted: boolean < i8, u8 < … < i64, u64 < bf16, f16 < f32 < f64. An integer tile with a float
//   tile gives the float type.
// - It is an error if neither type contains the other (f16 and bf16, i32 and u32): use cast().
// - A C++ literal takes the tile's type. A float literal with an integer tile gives f32.
// - Shapes broadcast as in NumPy.
//
// dialect/SEMANTICS.md defines each operation exactly. Tile.h includes the other headers of the API: Functions.h
// (composite and less common functions, such as scans), Sorts.h, MathFunctions.h (sin, atan2, …) and Scaled.h (block
// scales).

#pragma once

#include "dialect/dsl/Members.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <array>
#include <climits>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>

namespace kiln {

class At;
class Tile;
class Loop;

// --- Views and tiles -------------------------------------------------------------------------------------------------
//     Tile last = x.dim(0) - 1;        // x is a View; `last` is an i64 scalar

/// A kernel argument: memory with a type, extents and strides. A load out of bounds reads the padding; a store out of
/// bounds writes nothing.
class View : public ViewMistakes {
public:
  Type type() const;
  int rank() const;
  /// Extent of dimension `axis` as an i64 scalar, known at run time.
  Tile dim(int axis, Loc loc = here()) const;
  /// Extent of dimension `axis` as a compile-time constant. Each value of the extent compiles its own specialisation.
  int64_t extent(int axis, Loc loc = here()) const;
  /// The view at position `index` of dimension `axis`, without that dimension, like `torch.select`. `index` is an
  /// integer scalar. If it is out of bounds, all elements of the result are out of bounds.
  View select(int axis, At index, Loc loc = here()) const;
  /// Positions `begin` to `end` − 1 of dimension `axis`, as a view of equal rank. Position 0 of the result is `begin`.
  /// Both bounds are integer scalars. They are clamped to 0 … extent, so negative ones do not count from the end.
  /// Positions outside of the slice are out of bounds.
  View slice(int axis, At begin, At end, Loc loc = here()) const;
  /// Index of the argument in the kernel's parameter list.
  int index() const { return argument; }

private:
  friend class Tracer;
  explicit View(int argument) : argument(argument) {}
  int argument;
  std::shared_ptr<const struct Selection> selection; // null if the view is the whole argument
};

/// A traced value: a tile of elements, or a scalar if its rank is 0.
class Tile : public TileMistakes {
public:
  /// An unset tile; reading it before an assignment is an error.
  Tile(Loc loc = here());
  /// A scalar, `Tile n = 0;`: an integer gives i64, a float f32, a bool boolean.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Tile(Number number, Loc loc = here());
  Tile(const Tile &other);
  Tile &operator=(const Tile &other);
  /// A C++ number takes the type of the scalar that it replaces: after `Tile i = cast(n, i32)`, `i = 0` is i32. An
  /// integer does so for an integer or a float, a floating-point number for a float, a bool for a boolean. A number
  /// that does not fit the type is an error.
  Tile &operator=(Tile &&other);
  ~Tile();
  Type type(Loc loc = here()) const;
  /// Extents; empty for a scalar.
  Shape shape(Loc loc = here()) const;
  int rank(Loc loc = here()) const { return static_cast<int>(shape(loc).size()); }
  /// Extent of dimension `axis`, a compile-time constant; negative axes count from the end.
  int64_t extent(int axis, Loc loc = here()) const;

private:
  friend class Tracer;
  void hold(const At &number);
  void *value = nullptr; // the MLIR value that is bound to this cell; null if unset
  Loc declared;
  size_t cell = 0; // position in the tracer's list of live cells
};

/// An operand: a tile, or a C++ number that becomes a constant. It keeps the source line where it was written.
class At {
public:
  At(const Tile &tile, Loc loc = here()) : tile(tile), loc(loc) {}
  At(Tile &&tile, Loc loc = here()) : tile(tile), isTemporary(true), loc(loc) {}
  KILN_MISTAKE("a view is memory, and no tile: load(view, {n}, {64}) reads a tile") At(const View &, Loc = here());
  template <class Number>
    requires std::is_arithmetic_v<Number>
  At(Number number, Loc loc = here()) : loc(loc) {
    if constexpr (std::is_floating_point_v<Number>) {
      kind = Kind::floating;
      real = static_cast<double>(number);
    } else {
      kind = std::is_same_v<Number, bool> ? Kind::boolean : Kind::integer;
      integer = static_cast<int64_t>(number);
      isHuge = std::is_unsigned_v<Number> && integer < 0;
    }
  }

private:
  friend class Tracer;
  enum class Kind { tile, integer, floating, boolean } kind = Kind::tile;
  std::optional<Tile> tile; // a snapshot of the tile at the call
  bool isTemporary = false; // the tile is a temporary of this C++ expression
  bool isHuge = false;      // the value is unsigned and at least 2^63: 2^64 more than `integer`
  int64_t integer = 0;
  double real = 0;

public:
  Loc loc;
};

template <class Number>
  requires std::is_arithmetic_v<Number>
Tile::Tile(Number number, Loc loc) : Tile(loc) {
  hold(At(number, loc));
}

using Offsets = std::vector<At>;

/// A C++ integer that an int64_t holds; not bool.
template <class T>
concept HostInteger =
    std::integral<T> && !std::same_as<T, bool> && (std::signed_integral<T> || sizeof(T) < sizeof(int64_t));

/// The extents of a tile, in braces or as a Shape: compile-time integers.
class TileExtents : public Shape {
  struct Extent {
    template <std::integral T> Extent(T extent) : number(static_cast<int64_t>(extent)) {}
    template <class T>
      requires(!std::integral<T>)
    KILN_MISTAKE("an extent of a tile is an integer that is known while tracing, such as a config's field, or "
                 "view.extent(i) in place of view.dim(i)")
    Extent(const T &);
    int64_t number = 0;
  };

public:
  TileExtents() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  KILN_MISTAKE("a shape is a list in braces: {64}")
  TileExtents(Number);
  TileExtents(Shape shape) : Shape(std::move(shape)) {}
  TileExtents(std::initializer_list<Extent> extents) {
    for (const Extent &extent : extents)
      push_back(extent.number);
  }
};

/// One axis, several axes, or `everywhere` (all axes); negative axes count from the end.
class Axes {
public:
  Axes(int axis) : numbers{axis} {}
  Axes(std::initializer_list<int> axes) : numbers(axes) {}
  Axes(std::vector<int> axes) : numbers(std::move(axes)) {}
  std::vector<int> numbers;
};
inline constexpr int everywhere = INT_MIN;
/// `sum(x, -1, keep)` leaves the reduced axes at extent 1, like `keepdims` in NumPy.
inline constexpr bool keep = true;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// --- Programs --------------------------------------------------------------------------------------------------------
//     Tile n = program_id(0) * 64;     // a program is a CTA on a GPU

/// i64 index of this program along grid axis 0, 1 or 2.
Tile program_id(int axis = 0, Loc loc = here());
/// i64 number of programs along a grid axis.
Tile num_programs(int axis = 0, Loc loc = here());

// --- Creation --------------------------------------------------------------------------------------------------------
//     Tile acc = zeros(f32, {64, 64});

Tile zeros(Type type, TileExtents shape, Loc loc = here());
/// Every element is `value` (a number or a scalar tile), cast to `type`.
Tile full(Type type, TileExtents shape, At value, Loc loc = here());
/// A constant from these numbers in row-major order, rounded to `type`: `constant(f32, {2, 2}, {1, 0, 0, 1})`.
Tile constant(Type type, TileExtents shape, const std::vector<double> &numbers, Loc loc = here());
/// 0, 1, …, count − 1 as i32 or i64, like `tl.arange`.
Tile iota(int64_t count, Type type = Type::i32, Loc loc = here());

// --- Arithmetic: elementwise, with promotion and broadcasting --------------------------------------------------------
//     Tile y = max(x * 2 + 1, 0);

Tile operator+(At a, At b);
Tile operator-(At a, At b);
Tile operator*(At a, At b);
/// Float: IEEE division. Integer: truncates; x / 0 is 0 and INT_MIN / −1 wraps.
Tile operator/(At a, At b);
/// The remainder with the sign of the dividend. Float: exact, as fmod in C. Integer: x % 0 is x.
Tile operator%(At a, At b);
Tile operator-(At a);

/// Comparisons give boolean. Comparisons with NaN are false, except `!=`.
Tile operator==(At a, At b);
Tile operator!=(At a, At b);
Tile operator<(At a, At b);
Tile operator<=(At a, At b);
Tile operator>(At a, At b);
Tile operator>=(At a, At b);

/// Bitwise on integers, logical on boolean. `&&` and `||` are errors, because tiles cannot short-circuit.
Tile operator&(At a, At b);
Tile operator|(At a, At b);
Tile operator^(At a, At b);
Tile operator~(At a);
/// Logical not. A mistake is reported at the line that computed `a`; an `At` here would clash with the `!` of C++.
Tile operator!(const Tile &a);
/// A shift by the width or more gives 0, except that a right shift of signed numbers gives the sign (0 or −1).
Tile operator<<(At a, At b);
Tile operator>>(At a, At b);

Tile abs(At x);
/// The minimum and maximum. If one operand is NaN, the result is the other one.
Tile min(At a, At b);
Tile max(At a, At b);
/// The minimum and maximum of two host integers are host integers.
template <HostInteger A, HostInteger B> constexpr int64_t min(A a, B b) {
  return std::min(static_cast<int64_t>(a), static_cast<int64_t>(b));
}
template <HostInteger A, HostInteger B> constexpr int64_t max(A a, B b) {
  return std::max(static_cast<int64_t>(a), static_cast<int64_t>(b));
}
/// a · b + c with one rounding.
Tile fma(At a, At b, At c);
/// min(max(x, low), high).
Tile clamp(At x, At low, At high);
Tile floor(At x);
Tile ceil(At x);
Tile sqrt(At x);

/// Accuracy of a function: `full` is the bound of the language on every machine, `fast` the error of a GPU's own
/// instruction. dialect/NUMERICS.md has both bounds.
enum class Accuracy { full, fast };
/// The names of the values of Accuracy, in order.
inline const std::vector<std::string> accuracyNames = {"full", "fast"};
/// a / b on floats.
Tile divide(At a, At b, Accuracy accuracy);
/// 1 / sqrt(x).
Tile rsqrt(At x, Accuracy accuracy = Accuracy::full);
Tile exp(At x, Accuracy accuracy = Accuracy::full);
Tile exp2(At x, Accuracy accuracy = Accuracy::full);
Tile log(At x, Accuracy accuracy = Accuracy::full);
Tile log2(At x, Accuracy accuracy = Accuracy::full);
Tile tanh(At x, Accuracy accuracy = Accuracy::full);
/// `a` where the condition holds, else `b`, like `tl.where`. Both operands are evaluated.
Tile where(At condition, At a, At b);
/// Conversion. Float to integer truncates and saturates; NaN gives 0. Float to a narrower float rounds to nearest even.
Tile cast(At x, Type type);
/// Rounding of a conversion: to the nearest, ties to even; towards zero; towards −∞; towards +∞.
enum class Rounding { nearest, toward_zero, down, up };
/// Conversion with that rounding, also from float to integer: `cast(x, bf16, Rounding::toward_zero)`. A conversion that
/// does not round, such as bf16 to f32, ignores it.
Tile cast(At x, Type type, Rounding rounding);
/// Stochastic rounding of floats: `stochastic_round(x, bf16, random_bits(seed, index))`. An x between two neighbouring
/// numbers of `type` becomes one of them, so that the expected result is x. `bits` are random i32 or u32 and broadcast
/// to x.
Tile stochastic_round(At x, Type type, At bits);

// --- Shape -----------------------------------------------------------------------------------------------------------
//     Tile t = transpose(x);           // (N, M) of (M, N)

/// The elements in row-major order in another shape. One extent may be −1: it follows from the others.
Tile reshape(At x, TileExtents shape);
/// Dimension i of the result is dimension order[i] of x. Without an order, the last two dimensions are swapped.
Tile transpose(At x, std::vector<int> order = {});
/// Repeats dimensions of extent 1 and adds leading dimensions to get `shape`, like `torch.broadcast_to`.
Tile broadcast(At x, TileExtents shape);
/// Inserts a dimension of extent 1 before `axis`, like `torch.unsqueeze`; −1 appends.
Tile unsqueeze(At x, int axis);
/// Removes dimension `axis`, whose extent is 1, like `torch.squeeze`.
Tile squeeze(At x, int axis);
/// Rotates the elements by `by` positions along the axis, backwards if `by` is negative, as numpy.roll does.
Tile roll(At x, int64_t by, int axis = -1);

// --- Reductions: the axes disappear, or stay at extent 1 with `keep` -------------------------------------------------
//     Tile rowMax = reduce_max(x, -1); // (M) of (M, N)

/// Accumulator types of sum() and prod(): i32 for boolean, i8 and i16; u32 for u8 and u16. The result has that type.
/// Floats below 32 bits accumulate in f32, and the result is rounded to their own type.
Tile sum(At x, Axes axes = -1, bool keep = false);
Tile prod(At x, Axes axes = -1, bool keep = false);
/// The largest and the smallest element. NaN is ignored; if all elements are NaN, the result is NaN.
Tile reduce_max(At x, Axes axes = -1, bool keep = false);
Tile reduce_min(At x, Axes axes = -1, bool keep = false);
/// Bitwise on integers, logical on boolean.
Tile reduce_and(At x, Axes axes = -1, bool keep = false);
Tile reduce_or(At x, Axes axes = -1, bool keep = false);
Tile reduce_xor(At x, Axes axes = -1, bool keep = false);
/// i32 index of the largest or smallest element, the lowest of several equal ones. NaN is ignored; if all elements are
/// NaN, the index is 0. Along several axes the index counts in row-major order.
Tile argmax(At x, Axes axes = -1, bool keep = false);
Tile argmin(At x, Axes axes = -1, bool keep = false);

// --- Matrix product --------------------------------------------------------------------------------------------------
//     acc = dot(a, b, acc);            // (M, N) of (M, K), (K, N)

/// How an f32 matmul may round its operands for tensor cores, like `input_precision` of `tl.dot`. `ieee`: not at all.
/// `tf32`: to tf32. `tf32x3`, `bf16x3`: each operand is split into two tf32 or bf16 numbers, and three products are
/// added. Any value except `ieee` also permits tensor cores to add products of 8-bit floats with fewer bits than f32.
/// dialect/NUMERICS.md has the bounds.
enum class Precision { ieee, tf32, tf32x3, bf16x3 };
/// The names of the values of Precision, in order.
inline const std::vector<std::string> precisionNames = {"ieee", "tf32", "tf32x3", "bf16x3"};
/// a (…, M, K) · b (…, K, N) + acc (…, M, N). Leading extents are equal (batched matmul); the rank is at most 5.
/// f32, bf16, f16 and 8-bit floats accumulate in f32, i8 and u8 in i32, f64 in f64.
Tile dot(At a, At b, At acc, Precision precision = Precision::ieee);
/// a · b with an accumulator of zeros.
Tile dot(At a, At b, Precision precision = Precision::ieee);

// --- Memory ----------------------------------------------------------------------------------------------------------
//     Tile a = load(x, {m, k}, {64, 32});   // rows m to m + 63, columns k to k + 31
//     Tile r = load(x, {rows, 0}, {32});    // a gather: `rows` is a tile of row numbers

/// The value that a load out of bounds reads.
enum class Padding { zero, neg_zero, inf, neg_inf, nan };
/// Memory order of an atomic, as in the memory models of C++ and PTX.
enum class Order { relaxed, acquire, release, acq_rel };
/// Scope of an atomic, as in PTX: the threads for which it is atomic and ordered. `block`: this program. `device`: this
/// GPU. `system`: all processors that access the memory. With `block`, no other program may access the element
/// concurrently.
enum class Scope { block, device, system };
/// Cache eviction hint: `evict_first` for memory that is not used again soon, `evict_last` for memory that other
/// programs read soon, too. It changes no result.
enum class Cache { evict_normal, evict_first, evict_last };
/// Options of a load: `load(x, {n}, {64}, {.mask = m})`. The mask is boolean and broadcasts to the result. Where it is
/// false, the result is the padding, and no memory is accessed.
struct LoadOptions {
  Padding padding = Padding::zero;
  At mask = true;
  Cache cache = Cache::evict_normal;
};
/// Options of a store. Where the mask is false, nothing is written.
struct StoreOptions {
  At mask = true;
  Cache cache = Cache::evict_normal;
};
/// Options of an atomic: `atomic_add(x, {n}, 1, Order::relaxed, {.mask = m, .scope = Scope::block})`. Where the mask is
/// false, no memory is accessed, and the result is 0.
struct AtomicOptions {
  At mask = true;
  Scope scope = Scope::device;
};

/// Reads elements of `view`. `at` has one subscript per dimension, of one of two kinds:
/// - A number or scalar is the first position of a block; the block's extent is in `shape`. Missing leading extents
///   are 1, and the result lacks those dimensions.
/// - A tile of integers gives the position of each element (a gather). Such tiles broadcast together. The result has
///   their dimensions first, and then those of the blocks.
/// Elements out of bounds read the padding.
Tile load(View view, Offsets at, TileExtents shape = {}, LoadOptions how = {}, Loc loc = here());
Tile load(View view, Offsets at, TileExtents shape, Padding padding, Loc loc = here());
/// Writes a tile or a scalar to the elements that `at` names, as in load(). The caller casts the value; its shape may
/// drop leading extents of 1. If `at` names an element several times, the element gets one of the values.
void store(View view, Offsets at, At value, StoreOptions how = {}, Loc loc = here());

/// Atomic read-modify-write of the elements that `at` names; the result has their old values. If an element is named
/// several times, it changes that many times. dialect/SEMANTICS.md has the types.
Tile atomic_add(View view, Offsets at, At value, Order order = Order::relaxed, AtomicOptions how = {},
                Loc loc = here());
Tile atomic_min(View view, Offsets at, At value, Order order = Order::relaxed, AtomicOptions how = {},
                Loc loc = here());
Tile atomic_max(View view, Offsets at, At value, Order order = Order::relaxed, AtomicOptions how = {},
                Loc loc = here());
Tile atomic_and(View view, Offsets at, At value, Order order = Order::relaxed, AtomicOptions how = {},
                Loc loc = here());
Tile atomic_or(View view, Offsets at, At value, Order order = Order::relaxed, AtomicOptions how = {}, Loc loc = here());
Tile atomic_xor(View view, Offsets at, At value, Order order = Order::relaxed, AtomicOptions how = {},
                Loc loc = here());
Tile atomic_exchange(View view, Offsets at, At value, Order order = Order::acq_rel, AtomicOptions how = {},
                     Loc loc = here());
/// Writes `desired` if the element has the bits of `expected`; returns the old value.
Tile atomic_compare_exchange(View view, Offsets at, At expected, At desired, Order order = Order::acq_rel,
                             AtomicOptions how = {}, Loc loc = here());
/// Loads and stores of elements that other programs access concurrently. Each element is atomic.
Tile atomic_load(View view, Offsets at, TileExtents shape = {}, Order order = Order::acquire, AtomicOptions how = {},
                 Loc loc = here());
void atomic_store(View view, Offsets at, At value, Order order = Order::release, AtomicOptions how = {},
                  Loc loc = here());

// --- Debugging -------------------------------------------------------------------------------------------------------
//     device_assert(n < limit, "n is below the limit");

/// Prints one line per program: its number, the label and the elements.
void print(const std::string &label, At value);
/// If an element is false, the next synchronize() throws an Error with `message`. In the function of a scan or
/// reduction it checks the calls that contribute to a result.
void device_assert(At condition, const std::string &message);
/// Promises the compiler that a boolean scalar is true: `assume(first % 16 == 0)` permits vector loads at `first`. If
/// it is false, results are undefined. The simulator and the reference backend report that; other devices do not check.
void assume(At condition);

// --- Control flow ----------------------------------------------------------------------------------------------------
//     for (Tile k : range(0, x.dim(1), 32)) acc += load(x, {m, k}, {64, 32});

/// Compilation hints for a loop. They change no result; dialect/SEMANTICS.md says how each target uses them.
struct Hints {
  int unroll = 1;       // unroll factor
  int stages = 0;       // pipeline stages on a GPU, instead of the config's `stages`; 0: the config's
  bool pipeline = true; // whether tiles of later iterations may be prefetched (software pipelining)
};

/// A loop in the IR: `for (Tile k : range(0, n, step))` counts k, an i64, from `begin` to below `end`. With a negative
/// step it counts down, from `begin` to above `end`, as in Python. A step of 0 that is computed at run time counts
/// as 1.
Loop range(At begin, At end, At step = 1, Loc loc = here());
Loop range(At begin, At end, At step, Hints hints, Loc loc = here());
Loop range(At end, Loc loc = here());
/// A while loop in the IR: `for (Tile n : repeat_while([&] { return any(x > 1); }))`. The condition is a boolean
/// scalar, evaluated before each iteration; it must not assign to a tile. n counts from 0. The caller ensures that the
/// loop ends.
Loop repeat_while(const std::function<Tile()> &condition, Loc loc = here());

/// If the condition, a boolean scalar, is true: continue the innermost loop, break out of it, or end the program. The
/// rest of the body is skipped, also if the call is inside a side of an `if_`.
void continue_if(At condition);
void break_if(At condition);
void return_if(At condition);

/// A branch in the IR: only the chosen side runs. `condition` is a boolean scalar. Tiles assigned in either side keep
/// their type and shape.
void if_(At condition, const std::function<void()> &then, const std::function<void()> &otherwise = {},
         Loc loc = here());

} // namespace kiln

#include "dialect/dsl/Functions.h"
#include "dialect/dsl/Loop.h"
#include "dialect/dsl/MathFunctions.h"
#include "dialect/dsl/Mistakes.h"
#include "dialect/dsl/Scaled.h"
#include "dialect/dsl/Sorts.h"
