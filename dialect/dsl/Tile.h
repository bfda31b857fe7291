// The tile language: all that a kernel may say.
//
// A kernel is a C++ function over views and tiles. Calling it once, *tracing* it, records its operations as MLIR in the
// `tile` dialect. Host values (int, bool, config structs) are compile-time parameters: a host `for` unrolls and a host
// `if` chooses while tracing; `range` stays a loop, `when` stays a branch. A `Tile` is a variable: assignment rebinds
// it, and a tile that a loop body changes is carried from one iteration to the next. `auto x = acc;` is a snapshot.
//
//     void add(View x, View y, View out, AddConfig cfg) {
//       Tile n = program_id(0) * cfg.block;
//       store(out, {n}, load(x, {n}, {cfg.block}) + load(y, {n}, {cfg.block}));
//     }
//
// Mixed operands are promoted: an integer tile with a float gives the float; boolean < i8, u8 < … < i64, u64 < bf16,
// f16 < f32 < f64, but what has not all numbers of the other needs a cast. A C++ literal takes the tile's type (a float
// literal with an integer tile gives f32). Shapes broadcast as in NumPy. The meaning of each operation, in every
// corner, is in dialect/SEMANTICS.md. Verbs that are spelt from others, such as +=, and rarer ones, such as scans, are
// in Functions.h, sorts in Sorts.h, angles in MathFunctions.h and products with scales in Scaled.h, which come with it.

#pragma once

#include "dialect/dsl/Types.h"

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

/// A kernel argument: memory with a type, extents and strides. An index outside it reads the padding or writes nothing.
class View {
public:
  Type type() const;
  int rank() const;
  /// Extent of dimension `axis` as an i64 scalar of the program, known when it runs.
  Tile dim(int axis, Loc loc = here()) const;
  /// Extent of dimension `axis` as a host integer: makes that extent part of the specialisation.
  int64_t extent(int axis, Loc loc = here()) const;
  /// The view of what lies at `index`, an integer scalar, of dimension `axis`, which disappears. Where there is no such
  /// index all elements lie outside the view.
  View select(int axis, At index, Loc loc = here()) const;
  /// Index of the argument in the kernel's parameter list.
  int index() const { return argument; }

  template <class Index> Index operator[](Index index) const {
    static_assert(sizeof(Index) == 0,
                  "a view has no elements in C++: load(view, {i, j}, shape) reads a tile that begins "
                  "there, and store() writes one");
    return index;
  }

private:
  friend class Tracer;
  explicit View(int argument) : argument(argument) {}
  int argument;
  std::shared_ptr<const struct Selection> selection; // null where every dimension is left
};

/// A traced value: a tile of elements, or a scalar when its rank is 0.
class Tile {
public:
  /// An unset tile; reading it before an assignment is an error.
  Tile(Loc loc = here());
  /// A scalar, `Tile n = 0;`: i64 of an integer, f32 of a float, boolean of a bool.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  Tile(Number number, Loc loc = here());
  Tile(const Tile &other);
  Tile &operator=(const Tile &other);
  ~Tile();
  Type type(Loc loc = here()) const;
  /// Extents; empty for a scalar.
  Shape shape(Loc loc = here()) const;
  int rank(Loc loc = here()) const { return static_cast<int>(shape(loc).size()); }
  /// Extent of dimension `axis`, a host integer; negative axes count from the end.
  int64_t extent(int axis, Loc loc = here()) const;

  /// A traced condition has no C++ truth value: choose with where(), branch with when(), or use a host bool.
  template <class T = bool> explicit operator bool() const {
    static_assert(sizeof(T) == 0, "a traced condition has no C++ truth value: use where(), when(), or a host bool");
    return false;
  }
  template <class Index> Index operator[](Index index) const {
    static_assert(sizeof(Index) == 0, "a tile has no elements in C++: verbs compute with all of them at once, and "
                                      "load(view, {tile, ...}) reads those elements of a view that a tile names");
    return index;
  }

private:
  friend class Tracer;
  void hold(const At &number);
  void *value = nullptr; // the MLIR value now bound to this cell; null when unset
  Loc declared;
  size_t cell = 0; // position in the tracer's list of live cells
};

/// An operand with the line where it was written: a tile, or a C++ number that becomes a constant.
class At {
public:
  At(const Tile &tile, Loc loc = here()) : tile(tile), loc(loc) {}
  At(Tile &&tile, Loc loc = here()) : tile(tile), isTemporary(true), loc(loc) {}
  template <class Number>
    requires std::is_arithmetic_v<Number>
  At(Number number, Loc loc = here()) : loc(loc) {
    if constexpr (std::is_floating_point_v<Number>) {
      kind = Kind::real;
      real = static_cast<double>(number);
    } else {
      kind = std::is_same_v<Number, bool> ? Kind::truth : Kind::integer;
      integer = static_cast<int64_t>(number);
      isHuge = std::is_unsigned_v<Number> && integer < 0;
    }
  }

private:
  friend class Tracer;
  enum class Kind { tile, integer, real, truth } kind = Kind::tile;
  std::optional<Tile> tile; // a snapshot: what the tile held when it was passed
  bool isTemporary = false; // the tile is what another verb of the same C++ expression has just given
  bool isHuge = false;      // the integer is unsigned, from 2^63 on: 2^64 more than `integer` says
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

/// The extents of a tile, in braces or as a Shape: host integers, known while tracing.
class TileExtents : public Shape {
  struct Extent {
    template <class T> Extent(T extent) {
      static_assert(std::is_integral_v<T>, "an extent of a tile is an integer that is known while tracing, such as a "
                                           "config's field, or view.extent(i) in place of view.dim(i)");
      if constexpr (std::is_integral_v<T>)
        number = static_cast<int64_t>(extent);
    }
    int64_t number = 0;
  };

public:
  TileExtents() = default;
  TileExtents(Shape shape) : Shape(std::move(shape)) {}
  TileExtents(std::initializer_list<Extent> extents) {
    for (const Extent &extent : extents)
      push_back(extent.number);
  }
};

/// One axis, several, or `everywhere`, all there are; negative ones count from the end.
class Axes {
public:
  Axes(int axis) : numbers{axis} {}
  Axes(std::initializer_list<int> axes) : numbers(axes) {}
  Axes(std::vector<int> axes) : numbers(std::move(axes)) {}
  std::vector<int> numbers;
};
inline constexpr int everywhere = INT_MIN;
/// What a reduction may do with its axes: `sum(x, -1, keep)` leaves them at extent 1.
inline constexpr bool keep = true;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// --- Programs --------------------------------------------------------------------------------------------------------

/// Index of this program along a grid axis (0, 1, 2): i64.
Tile program_id(int axis = 0, Loc loc = here());
/// Extent of the grid along an axis: i64.
Tile num_programs(int axis = 0, Loc loc = here());

// --- Creation --------------------------------------------------------------------------------------------------------

Tile zeros(Type type, TileExtents shape, Loc loc = here());
/// Every element `value` (a number or a scalar tile), cast to `type`.
Tile full(Type type, TileExtents shape, At value, Loc loc = here());
/// These numbers, which `type` has or rounds to, in row-major order: `constant(f32, {2, 2}, {1, 0, 0, 1})`.
Tile constant(Type type, TileExtents shape, const std::vector<double> &numbers, Loc loc = here());
/// 0, 1, …, count − 1 as i32 or i64.
Tile iota(int64_t count, Type type = Type::i32, Loc loc = here());

// --- Arithmetic: elementwise, with promotion and broadcasting --------------------------------------------------------

Tile operator+(At a, At b);
Tile operator-(At a, At b);
Tile operator*(At a, At b);
/// Float: IEEE. Integer: truncates; x / 0 is 0 and INT_MIN / −1 wraps.
Tile operator/(At a, At b);
/// The remainder, with the dividend's sign. Float: exact, as C's fmod. Integer: x % 0 is x.
Tile operator%(At a, At b);
Tile operator-(At a);

/// Comparisons give boolean; with NaN all are false but `!=`.
Tile operator==(At a, At b);
Tile operator!=(At a, At b);
Tile operator<(At a, At b);
Tile operator<=(At a, At b);
Tile operator>(At a, At b);
Tile operator>=(At a, At b);

/// Bitwise on integers, logical on boolean. `&&` and `||` are deleted: tiles cannot short-circuit.
Tile operator&(At a, At b);
Tile operator|(At a, At b);
Tile operator^(At a, At b);
Tile operator~(At a);
/// Logical not; a mistake is reported at the line that computed `a` (an `At` here would clash with C++'s own `!`).
Tile operator!(const Tile &a);
/// Shifts by the width or more give 0 (left, and right of unsigned numbers) or the sign (right).
Tile operator<<(At a, At b);
Tile operator>>(At a, At b);
template <class A, class B>
  requires(std::same_as<A, Tile> || std::same_as<B, Tile>)
Tile operator&&(const A &, const B &) = delete;
template <class A, class B>
  requires(std::same_as<A, Tile> || std::same_as<B, Tile>)
Tile operator||(const A &, const B &) = delete;

Tile abs(At x);
/// The other operand where one is NaN.
Tile min(At a, At b);
Tile max(At a, At b);
/// a · b + c with one rounding.
Tile fma(At a, At b, At c);
/// min(max(x, low), high).
Tile clamp(At x, At low, At high);
Tile floor(At x);
Tile ceil(At x);
Tile sqrt(At x);

/// How far a function may be off: within the bounds of every machine, or as far as a GPU's own instruction for it.
/// dialect/NUMERICS.md has both.
enum class Accuracy { full, fast };
/// Their names, in this order.
inline const std::vector<std::string> accuracyNames = {"full", "fast"};
/// a / b of floats.
Tile divide(At a, At b, Accuracy accuracy);
/// 1 / sqrt(x).
Tile rsqrt(At x, Accuracy accuracy = Accuracy::full);
Tile exp(At x, Accuracy accuracy = Accuracy::full);
Tile exp2(At x, Accuracy accuracy = Accuracy::full);
Tile log(At x, Accuracy accuracy = Accuracy::full);
Tile log2(At x, Accuracy accuracy = Accuracy::full);
Tile tanh(At x, Accuracy accuracy = Accuracy::full);
/// `a` where the condition holds, else `b`; both are evaluated.
Tile where(At condition, At a, At b);
/// Conversion: float → integer truncates and saturates, NaN gives 0; narrowing floats round to nearest even.
Tile cast(At x, Type type);

// --- Shape -----------------------------------------------------------------------------------------------------------

Tile reshape(At x, TileExtents shape);
/// Dimension i of the result is dimension order[i] of x; without an order the last two dimensions change places.
Tile transpose(At x, std::vector<int> order = {});
/// Repeats dimensions of extent 1, and adds leading ones, up to `shape`.
Tile broadcast(At x, TileExtents shape);
/// Inserts a dimension of extent 1 before `axis` (negative counts from the end: −1 appends).
Tile expand(At x, int axis);
/// The elements moved on by `by` positions along the axis, or back where that is negative; what leaves one end comes in
/// at the other, as numpy.roll has it.
Tile roll(At x, int64_t by, int axis = -1);

// --- Reductions: the axes disappear, or stay at extent 1 with `keep` -------------------------------------------------

/// boolean, i8 and i16 are summed, and multiplied, in i32, u8 and u16 in u32, and the results are of these types;
/// floats below 32 bits in f32, and the results are rounded to their own type.
Tile sum(At x, Axes axes = -1, bool keep = false);
Tile prod(At x, Axes axes = -1, bool keep = false);
Tile reduce_max(At x, Axes axes = -1, bool keep = false);
Tile reduce_min(At x, Axes axes = -1, bool keep = false);
/// Bitwise on integers, logical on boolean.
Tile reduce_and(At x, Axes axes = -1, bool keep = false);
Tile reduce_or(At x, Axes axes = -1, bool keep = false);
Tile reduce_xor(At x, Axes axes = -1, bool keep = false);
/// i32 index of the largest or smallest element, the lowest one on ties, NaN last; along several axes it counts in
/// row-major order.
Tile argmax(At x, Axes axes = -1, bool keep = false);
Tile argmin(At x, Axes axes = -1, bool keep = false);

// --- Matrix product --------------------------------------------------------------------------------------------------

/// How far products of f32 may be rounded, for the sake of tensor cores: not at all, their operands to tf32, or to sums
/// of two tf32 or two bf16. Any but `ieee` permits coarse sums of floats of 8 bits. dialect/NUMERICS.md has the bounds.
enum class Precision { ieee, tf32, tf32x3, bf16x3 };
/// Their names, in this order.
inline const std::vector<std::string> precisionNames = {"ieee", "tf32", "tf32x3", "bf16x3"};
/// a (…, M, K) · b (…, K, N) + acc (…, M, N), of equal leading extents: one product for each pair of matrices, rank at
/// most 5. f32, bf16, f16 and floats of 8 bits accumulate in f32, i8 in i32, f64 in f64.
Tile dot(At a, At b, At acc, Precision precision = Precision::ieee);
/// The same from an accumulator of zeros.
Tile dot(At a, At b, Precision precision = Precision::ieee);

// --- Memory ----------------------------------------------------------------------------------------------------------

/// What an index outside a view reads.
enum class Padding { zero, neg_zero, inf, neg_inf, nan };
/// How an atomic orders the memory operations round it.
enum class Order { relaxed, acquire, release, acq_rel };
/// When memory is wanted again: as is usual, not soon, or soon, by other programs too. It changes no result.
enum class Cache { usual, stream, keep };
/// What a load does besides: `load(x, {n}, {64}, {.mask = m})`. Where the mask, a boolean that broadcasts to the
/// result, is false, it reads the padding and touches no memory.
struct Reading {
  Padding padding = Padding::zero;
  At mask = true;
  Cache cache = Cache::usual;
};
/// What a store or atomic does besides: nothing where the mask is false; an atomic returns 0 there, and has no cache.
struct Writing {
  At mask = true;
  Cache cache = Cache::usual;
};

/// Elements of `view` by its subscripts, one for each dimension. A number or scalar is where a block of the result
/// begins, with its extent in `shape`; missing leading ones are 1 and dropped. Tiles of integers name positions one by
/// one: they broadcast together, and their shape comes before the blocks. Outside the view reads the padding.
Tile load(View view, Offsets at, TileExtents shape = {}, Reading how = {}, Loc loc = here());
Tile load(View view, Offsets at, TileExtents shape, Padding padding, Loc loc = here());
/// Writes a tile (or a scalar) there; the value is cast by the caller, its shape may drop leading ones of the blocks.
/// An element that is named several times gets one of the values.
void store(View view, Offsets at, At value, Writing how = {}, Loc loc = here());

/// Each changes the elements there indivisibly and returns them as they were. An element that is named several times
/// changes once for each. dialect/SEMANTICS.md has the types.
Tile atomic_add(View view, Offsets at, At value, Order order = Order::relaxed, Writing how = {}, Loc loc = here());
Tile atomic_min(View view, Offsets at, At value, Order order = Order::relaxed, Writing how = {}, Loc loc = here());
Tile atomic_max(View view, Offsets at, At value, Order order = Order::relaxed, Writing how = {}, Loc loc = here());
Tile atomic_and(View view, Offsets at, At value, Order order = Order::relaxed, Writing how = {}, Loc loc = here());
Tile atomic_or(View view, Offsets at, At value, Order order = Order::relaxed, Writing how = {}, Loc loc = here());
Tile atomic_xor(View view, Offsets at, At value, Order order = Order::relaxed, Writing how = {}, Loc loc = here());
Tile atomic_exchange(View view, Offsets at, At value, Order order = Order::acq_rel, Writing how = {}, Loc loc = here());
/// Writes `desired` where the element has the bits of `expected`.
Tile atomic_compare_exchange(View view, Offsets at, At expected, At desired, Order order = Order::acq_rel,
                             Writing how = {}, Loc loc = here());
/// Loads and stores of elements that other programs access meanwhile, each whole.
Tile atomic_load(View view, Offsets at, TileExtents shape = {}, Order order = Order::acquire, Loc loc = here());
void atomic_store(View view, Offsets at, At value, Order order = Order::release, Writing how = {}, Loc loc = here());

// --- Debugging -------------------------------------------------------------------------------------------------------

/// Prints a line for each program: its number, the label, the elements.
void print(const std::string &label, At value);
/// The launch's next synchronisation fails with `message` when an element is false.
void check(At condition, const std::string &message);

// --- Control flow ----------------------------------------------------------------------------------------------------

/// How a loop is to be compiled. No result depends on it; dialect/SEMANTICS.md says what each target makes of it.
struct Hints {
  int unroll = 1; // so many rounds become one of the program's loop
  int stages = 0; // rounds whose tiles a GPU has under way at once, in place of the config's; 0: as the config says
  bool pipeline = true; // whether tiles of later rounds may be copied ahead at all
};

/// A loop in the program: `for (Tile k : range(0, n, step))` with i64 k from `begin` below `end`; a step that the
/// program computes counts as 1 where it is below.
Loop range(At begin, At end, At step = 1, Loc loc = here());
Loop range(At begin, At end, At step, Hints hints, Loc loc = here());
Loop range(At end, Loc loc = here());
/// A loop for as long as the condition holds, a boolean scalar that is asked before each round and changes no tile:
/// `for (Tile n : repeat_while([&] { return any(x > 1); }))`, where n counts from 0. That it ends is up to the caller.
Loop repeat_while(const std::function<Tile()> &condition, Loc loc = here());

/// Where the condition, a boolean scalar, holds, the innermost loop goes on with its next round, the innermost loop
/// ends, or the program does: what follows is not done, wherever this stands, be it in a side of a `when`.
void continue_when(At condition);
void break_when(At condition);
void return_when(At condition);

/// A branch in the program: only the chosen side runs. `condition` is a boolean scalar. Tiles assigned in either side
/// keep the type and shape they had before.
void when(At condition, const std::function<void()> &then, const std::function<void()> &otherwise = {},
          Loc loc = here());

} // namespace kiln

#include "dialect/dsl/Functions.h"
#include "dialect/dsl/Loop.h"
#include "dialect/dsl/MathFunctions.h"
#include "dialect/dsl/Mistakes.h"
#include "dialect/dsl/Scaled.h"
#include "dialect/dsl/Sorts.h"
