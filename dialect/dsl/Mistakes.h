// Overloads for likely mistakes, such as a mask in the wrong place, or a former name. Each is an error at the user's
// line in one clear sentence, instead of many lines about candidates. Tile.h includes this; none of it can be used.

#pragma once

#include "dialect/dsl/Tile.h"

namespace kiln {

/// A tile or number in the place of a mask or of a list of offsets.
template <class T>
concept NoList = std::same_as<T, Tile> || std::is_arithmetic_v<T>;

/// The mask of a load in braces without its name: `load(x, {n}, {64}, {m})`.
struct UnnamedMask {
  At mask;
};

#define KILN_MASK_OF_LOAD                                                                                              \
  KILN_MISTAKE("a load's mask stands in braces, load(view, {n}, {64}, {.mask = m}), and there is no other value: "     \
               "elements outside the view or the mask read the padding, such as Padding::zero; choose among loaded "   \
               "elements by where()")
#define KILN_MASK_OF_STORE                                                                                             \
  KILN_MISTAKE("a store takes a view, its offsets and a value, which brings its own shape; a mask stands in braces: "  \
               "store(view, {n}, x, {.mask = m})")
#define KILN_OFFSET KILN_MISTAKE("the offsets of a view are a list in braces, one for each dimension: {n}, {m, 0}")

template <NoList T, class... More> KILN_MASK_OF_LOAD Tile load(View, Offsets, TileExtents, T, More...);
template <std::same_as<Tile> T, class... More> KILN_MASK_OF_LOAD Tile load(View, Offsets, T, More...);
template <class T = Tile> KILN_MASK_OF_LOAD T load(View, Offsets, TileExtents, UnnamedMask);
template <NoList T, class... More> KILN_MASK_OF_STORE void store(View, Offsets, At, T, More...);
template <NoList T, class... More>
KILN_MASK_OF_STORE void store(View, Offsets, std::initializer_list<int64_t>, T, More...);
template <NoList T, class... More> KILN_MASK_OF_STORE Tile atomic_add(View, Offsets, At, T, More...);

/// A pointer, where a view belongs.
#define KILN_POINTER                                                                                                   \
  KILN_MISTAKE("memory is a View, which knows its type, extents and strides: write View x, not float *x, in the "      \
               "parameters of the kernel")
template <class T> KILN_POINTER Tile load(T *);
template <class T> KILN_POINTER Tile load(T *, Offsets, TileExtents = {}, AnyArgument = {});
template <class T> KILN_POINTER void store(T *, Offsets, At, AnyArgument = {});
template <class T> KILN_POINTER View operator+(T *, const Tile &);
#undef KILN_POINTER

template <class T = Tile> KILN_OFFSET T load(View);
template <class T> KILN_OFFSET void store(View, const T &);
template <NoList T, class... More> KILN_OFFSET Tile load(View, T, TileExtents, More...);
template <NoList T, class... More> KILN_OFFSET void store(View, T, At, More...);
template <NoList T, class... More> KILN_OFFSET Tile atomic_add(View, T, At, More...);
#undef KILN_MASK_OF_LOAD
#undef KILN_MASK_OF_STORE
#undef KILN_OFFSET

/// An optional view or a list of views in the place of one view.
template <class T>
concept NotOneView = std::same_as<T, std::optional<View>> || std::same_as<T, std::vector<View>>;
#define KILN_ONE_VIEW                                                                                                  \
  KILN_MISTAKE("an optional view is accessed as *bias, after if (bias), and a list of views by its elements, xs[i] "   \
               "or for (View x : xs)")
template <NotOneView T> KILN_ONE_VIEW Tile load(const T &, Offsets, TileExtents = {}, LoadOptions = {});
template <NotOneView T> KILN_ONE_VIEW void store(const T &, Offsets, At, StoreOptions = {});
#undef KILN_ONE_VIEW

template <std::same_as<Tile> T>
KILN_MISTAKE("iota counts to an integer that is known while tracing, such as a config's field, or view.extent(i) in "
             "place of view.dim(i)")
Tile iota(const T &count, Type = Type::i32, Loc = here());

/// Options of Triton's load.
struct OptionsWithOther {
  Padding padding = Padding::zero;
  At mask = true;
  AnyArgument other = {};
  Cache cache = Cache::evict_normal;
};
template <class T = Tile>
KILN_MISTAKE("load has no option .other: elements outside the view or the mask read .padding, such as Padding::zero; "
             "where() chooses another value")
T load(View, Offsets, TileExtents, OptionsWithOther, AnyArgument = {});

/// The bounds of Triton's arange.
template <class First, class Last>
  requires std::integral<Last> || std::same_as<Last, Tile>
KILN_MISTAKE("iota takes a count: iota(64) is 0 to 63, and n + iota(64) is n to n + 63")
Tile iota(const First &, const Last &);

// --- Operators of C++ ------------------------------------------------------------------------------------------------

template <class A, class B>
  requires(std::same_as<A, Tile> || std::same_as<B, Tile>)
KILN_MISTAKE("write a & b: && needs a truth value while tracing")
Tile operator&&(const A &, const B &);
template <class A, class B>
  requires(std::same_as<A, Tile> || std::same_as<B, Tile>)
KILN_MISTAKE("write a | b: || needs a truth value while tracing")
Tile operator||(const A &, const B &);

// --- The type last, as in Triton and PyTorch -------------------------------------------------------------------------

template <class T = Tile> KILN_MISTAKE("the type comes first: zeros(f32, {64})") T zeros(TileExtents, AnyArgument = {});
template <class T = Tile>
KILN_MISTAKE("the type comes first, and the value last: full(f32, {64}, 0)")
T full(TileExtents, At, AnyArgument = {});
template <class T = Tile> KILN_MISTAKE("the type comes last: cast(x, f16)") T cast(Type, At);

// --- Former names ----------------------------------------------------------------------------------------------------

template <class T = Tile> KILN_MISTAKE("expand() is called unsqueeze()") T expand(AnyArgument, AnyArgument);
template <class T = Tile> KILN_MISTAKE("take() is called gather()") T take(AnyArgument, AnyArgument, AnyArgument = {});
template <class T = Tile>
KILN_MISTAKE("gather() is for tiles: load(view, {rows, 0}, {C}) reads rows of a view")
T gather(View, AnyArgument, AnyArgument, AnyArgument, AnyArgument = {}, AnyArgument = {});
template <class T = Tile>
KILN_MISTAKE("store(view, {rows, 0}, x) writes rows of a view")
T scatter(View, AnyArgument, AnyArgument, AnyArgument, AnyArgument = {});
template <class T = Tile> KILN_MISTAKE("when() is called if_()") T when(AnyArgument, AnyArgument, AnyArgument = {});
template <class T = Tile> KILN_MISTAKE("continue_when() is called continue_if()") T continue_when(AnyArgument);
template <class T = Tile> KILN_MISTAKE("break_when() is called break_if()") T break_when(AnyArgument);
template <class T = Tile> KILN_MISTAKE("return_when() is called return_if()") T return_when(AnyArgument);
template <class... Arguments>
  requires(std::same_as<std::remove_cvref_t<Arguments>, Tile> || ...)
KILN_MISTAKE("printf() of C prints no tile: write print(\"x\", x)")
int printf(const char *, const Arguments &...);
template <class T = Tile> KILN_MISTAKE("check() is called device_assert()") T check(AnyArgument, AnyArgument);
template <class T = int64_t> KILN_MISTAKE("ceildiv() is called cdiv()") T ceildiv(AnyArgument, AnyArgument);

// --- Names of Triton's and NumPy's -----------------------------------------------------------------------------------

template <class T = Tile>
KILN_MISTAKE("arange() is called iota(): iota(64) is 0 to 63")
T arange(AnyArgument, AnyArgument = {}, AnyArgument = {});
template <class T = Tile>
KILN_MISTAKE("a tile has a value from the beginning: zeros(f32, {64})")
T empty(AnyArgument, AnyArgument = {}, AnyArgument = {});
/// max(x) and min(x), which are reductions in Triton.
template <class T = Tile>
KILN_MISTAKE("max(a, b) is elementwise; the largest element along an axis is reduce_max(x, axis)")
T max(AnyArgument);
template <class T = Tile>
KILN_MISTAKE("min(a, b) is elementwise; the smallest element along an axis is reduce_min(x, axis)")
T min(AnyArgument);
template <class T = Tile> KILN_MISTAKE("maximum() is called max()") T maximum(AnyArgument, AnyArgument);
template <class T = Tile> KILN_MISTAKE("minimum() is called min()") T minimum(AnyArgument, AnyArgument);
#define KILN_CALLED(name, here)                                                                                        \
  template <class T = Tile>                                                                                            \
  KILN_MISTAKE(#name "() is called " here)                                                                             \
  T name(AnyArgument, AnyArgument = {}, AnyArgument = {}, AnyArgument = {});
KILN_CALLED(associative_scan, "scan(): scan({x, y}, axis, f)")
KILN_CALLED(atomic_cas, "atomic_compare_exchange(): atomic_compare_exchange(view, {n}, expected, desired)")
KILN_CALLED(atomic_xchg, "atomic_exchange(): atomic_exchange(view, {n}, x)")
KILN_CALLED(broadcast_to, "broadcast(): broadcast(x, {4, 64})")
KILN_CALLED(cat, "concat(): concat({a, b}, axis)")
KILN_CALLED(device_print, "print(): print(\"x\", x)")
KILN_CALLED(expand_dims, "unsqueeze(): unsqueeze(x, 1) is x[:, None]")
KILN_CALLED(permute, "transpose(): transpose(x, {1, 0})")
KILN_CALLED(rand, "random(): random(seed, index)")
KILN_CALLED(randint, "random_bits(): random_bits(seed, index)")
KILN_CALLED(randn, "random_normal(): random_normal(seed, index)")
KILN_CALLED(ravel, "reshape(): reshape(x, {-1})")
KILN_CALLED(trans, "transpose(): transpose(x)")
KILN_CALLED(umulhi, "mulhi()")
#undef KILN_CALLED
template <class T = std::initializer_list<int>>
KILN_MISTAKE("static_range() is the for of C++: for (int i = 0; i < 4; ++i)")
T static_range(AnyArgument, AnyArgument = {}, AnyArgument = {});
template <class T = Tile>
KILN_MISTAKE("a view has extents: load(view, {m, k}, {64, 32}) reads a block at any position, without a block pointer")
T make_block_ptr(AnyArgument, AnyArgument = {}, AnyArgument = {}, AnyArgument = {}, AnyArgument = {}, AnyArgument = {});

#define KILN_PREFIX                                                                                                    \
  KILN_MISTAKE("names have no prefix tl: write load(view, {n}, {64}), dot(a, b, acc), program_id(0), f16")
#define KILN_OF_TRITON(name) template <class... T> KILN_PREFIX static Tile name(const T &...);
/// `tl.load(…)`, and `tl::load(…)` for the most frequent names.
struct tl {
  KILN_OF_TRITON(arange)
  KILN_OF_TRITON(cdiv)
  KILN_OF_TRITON(dot)
  KILN_OF_TRITON(exp)
  KILN_OF_TRITON(full)
  KILN_OF_TRITON(load)
  KILN_OF_TRITON(max)
  KILN_OF_TRITON(num_programs)
  KILN_OF_TRITON(program_id)
  KILN_OF_TRITON(store)
  KILN_OF_TRITON(sum)
  KILN_OF_TRITON(where)
  KILN_OF_TRITON(zeros)
};
KILN_PREFIX extern const struct tl tl;
#undef KILN_OF_TRITON
#undef KILN_PREFIX

} // namespace kiln

/// Functions of the C++ library that also exist for tiles, such as `std::exp`. The templates accept only tiles, so
/// calls with other types do not change.
namespace std {
#define KILN_WITHOUT_STD KILN_MISTAKE("functions of tiles have no std:: before them: write exp(x), max(x, y)")
#define KILN_OF_CXX(name)                                                                                              \
  template <std::same_as<kiln::Tile> T, class... More> KILN_WITHOUT_STD T name(const T &, const More &...);
KILN_OF_CXX(abs)
KILN_OF_CXX(ceil)
KILN_OF_CXX(cos)
KILN_OF_CXX(erf)
KILN_OF_CXX(exp)
KILN_OF_CXX(exp2)
KILN_OF_CXX(floor)
KILN_OF_CXX(fma)
KILN_OF_CXX(isnan)
KILN_OF_CXX(log)
KILN_OF_CXX(log2)
KILN_OF_CXX(pow)
KILN_OF_CXX(round)
KILN_OF_CXX(sin)
KILN_OF_CXX(sqrt)
KILN_OF_CXX(tanh)
template <std::same_as<kiln::Tile> T> KILN_WITHOUT_STD T max(const T &, const T &);
template <std::same_as<kiln::Tile> T> KILN_WITHOUT_STD T min(const T &, const T &);
template <class A, class B>
  requires(std::same_as<A, kiln::Tile> != std::same_as<B, kiln::Tile>)
KILN_WITHOUT_STD kiln::Tile max(const A &, const B &);
template <class A, class B>
  requires(std::same_as<A, kiln::Tile> != std::same_as<B, kiln::Tile>)
KILN_WITHOUT_STD kiln::Tile min(const A &, const B &);
#undef KILN_OF_CXX
#undef KILN_WITHOUT_STD
} // namespace std
