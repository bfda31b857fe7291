// Reductions, scans and sorts: one property for all verbs. Each line of a tile, along an axis, or in row-major order
// along several, gives the result of a left fold in plain C++, exactly or within the bound of dialect/NUMERICS.md. A
// case is drawn by its number: a row of the table below, type, shape, axes, direction, the form of the operand, and the
// views in memory. `Folds.AreLeftFolds/cpu_17` is case 17 on the CPU.

#include "test/runtime/semantics/drawn.h"
#include "test/runtime/semantics/semantics.h"

#include <bit>
#include <cmath>
#include <map>

using namespace kiln;
using namespace kiln::test;

namespace {

/// The axes, and the direction.
struct Way {
  std::vector<int> axes;
  bool isScan = false, keeps = false, reverse = false; // reverse: of a sort, in descending order
  int64_t count = 0;                                   // of topk
};

/// The elements of a line, first to last, and their numbers.
struct Line {
  Type type;
  Raw words;
  size_t size() const { return words.size(); }
  long double number(size_t i) const {
    return isFloat(type) ? toDouble(type, words[i]) : static_cast<long double>(wideOf(type, words[i]));
  }
};

// --- Left folds ------------------------------------------------------------------------------------------------------

Type totalOf(Type type) { return isFloat(type) || bytesOf(type) >= 4 ? type : isUnsigned(type) ? u32 : i32; }

/// The scan of a line by a function of two 64-bit words; the results are then wrapped to the type.
Raw foldWords(const Line &line, Type result, uint64_t (*step)(uint64_t, uint64_t)) {
  Raw all;
  for (size_t i = 0; i < line.size(); ++i) {
    const auto word = static_cast<uint64_t>(integerOf(line.type, line.words[i]));
    all.push_back(i == 0 ? word : step(all.back(), word));
  }
  for (uint64_t &word : all)
    word = rawOfInteger(result, static_cast<int64_t>(word));
  return all;
}

/// For floats, rounded once.
Raw foldNumbers(const Line &line, double (*step)(double, double)) {
  Raw all;
  double total = line.number(0);
  for (size_t i = 0; i < line.size(); ++i)
    all.push_back(rawOfReal(line.type, total = i == 0 ? total : step(total, line.number(i))));
  return all;
}

Raw sums(const Line &line) {
  if (isFloat(line.type))
    return foldNumbers(line, [](double a, double b) { return a + b; });
  return foldWords(line, totalOf(line.type), [](uint64_t a, uint64_t b) { return a + b; });
}

Raw products(const Line &line) {
  if (isFloat(line.type))
    return foldNumbers(line, [](double a, double b) { return a * b; });
  return foldWords(line, totalOf(line.type), [](uint64_t a, uint64_t b) { return a * b; });
}

Raw ands(const Line &line) {
  return foldWords(line, line.type, [](uint64_t a, uint64_t b) { return a & b; });
}
Raw ors(const Line &line) {
  return foldWords(line, line.type, [](uint64_t a, uint64_t b) { return a | b; });
}
Raw xors(const Line &line) {
  return foldWords(line, line.type, [](uint64_t a, uint64_t b) { return a ^ b; });
}

/// Whether element a is ordered before b: NaN last in both directions.
bool isBefore(const Line &line, size_t a, size_t b, bool descending) {
  const long double x = line.number(a), y = line.number(b);
  return std::isnan(y) ? !std::isnan(x) : descending ? x > y : x < y;
}

/// The position of the first of all up to each element.
std::vector<size_t> firsts(const Line &line, bool descending) {
  std::vector<size_t> all{0};
  for (size_t i = 1; i < line.size(); ++i)
    all.push_back(isBefore(line, i, all.back(), descending) ? i : all.back());
  return all;
}

Raw extremes(const Line &line, bool descending) {
  Raw all;
  for (const size_t place : firsts(line, descending))
    all.push_back(computed(line.type, line.words[place]));
  return all;
}
Raw largest(const Line &line) { return extremes(line, true); }
Raw smallest(const Line &line) { return extremes(line, false); }

/// The largest or smallest, or NaN from the first NaN on.
Raw extremesOrNaN(const Line &line, bool descending) {
  Raw all = extremes(line, descending);
  for (size_t i = 0, isNaN = false; i < all.size(); ++i)
    if (isNaN |= std::isnan(line.number(i)); isNaN)
      all[i] = rawOfReal(line.type, NAN);
  return all;
}
Raw largestOrNaN(const Line &line) { return extremesOrNaN(line, true); }
Raw smallestOrNaN(const Line &line) { return extremesOrNaN(line, false); }

Raw places(const Line &line, bool descending) {
  Raw all;
  for (const size_t place : firsts(line, descending))
    all.push_back(place);
  return all;
}
Raw largestPlaces(const Line &line) { return places(line, true); }
Raw smallestPlaces(const Line &line) { return places(line, false); }

Raw firstElements(const Line &line) { return Raw(line.size(), line.words[0]); }

Raw elementsBefore(const Line &line) {
  Raw all{line.words[0]};
  all.insert(all.end(), line.words.begin(), line.words.end() - 1);
  return all;
}

/// h = a, then ±h + a by the sign of a.
Raw recurrences(const Line &line) {
  return foldWords(line, line.type,
                   [](uint64_t h, uint64_t a) { return (static_cast<int64_t>(a) > 0 ? h : 0 - h) + a; });
}

std::vector<size_t> orderOf(const Line &line, bool descending) {
  std::vector<size_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return isBefore(line, a, b, descending); });
  return order;
}

// --- Verbs -----------------------------------------------------------------------------------------------------------

enum Types {
  integers = 1,
  truths = 2,
  floats = 4,
  byteFloatTypes = 8,
  numbers = integers | floats,
  every = 15,
  words32 = 16
};
enum Data { exact, powers, special, near };
enum Result { own, total, place, early }; // early: an element whose position is below `count`, otherwise 0

using Pair = std::array<Tile, 2>;
using Three = std::array<Tile, 3>;

template <class F> Tile folded(const Tile &t, const Way &way, F f) {
  return way.isScan ? scan(t, way.axes[0], f, way.reverse) : reduce(t, way.axes[0], f);
}
template <class T, size_t N, class F> T folded(const At (&tiles)[N], const Way &way, F f) {
  return way.isScan ? scan(tiles, way.axes[0], f, way.reverse) : reduce(tiles, way.axes[0], f);
}

Tile recurrence(const Tile &t, const Way &way) {
  const auto recur = [](Pair p, Pair q) { return Pair{p[0] * q[0], p[1] * q[0] + q[1]}; };
  const Tile sign = cast(where(t > 0, 1, -1), t.type());
  return folded<Pair>({sign, t}, way, recur)[1];
}

/// The number of elements, the one before the last, and the last.
Tile before(const Tile &t, const Way &way) {
  const auto roll = [](Three p, Three q) { return Three{p[0] + q[0], where(q[0] == 1, p[2], q[1]), q[2]}; };
  return folded<Three>({full(i32, t.shape(), 1), t, t}, way, roll)[1];
}

/// Elements whose position is below `count`, so that the positions are used, too.
Tile atEarly(const Pair &found, const Way &way) {
  return where(found[1] < way.count, found[0], zeros(found[0].type(), found[0].shape()));
}

enum Use { reduces = 1, scans = 2, both = 3, sorts = 4 };

/// A verb, its left fold, and the data on which it is exact; near: it is within its bound.
const struct Fold {
  const char *name;
  int types;
  Data data;
  int use;
  Tile (*apply)(const Tile &, const Way &);
  Raw (*want)(const Line &);
  Result result = own;
  bool hasOneAxis = false; // as functions have
} folds[] = {
#define FOLD(reduction, scanned) [](const Tile &t, const Way &w) { return w.isScan ? scanned : reduction; }
    {"sum", numbers | truths | byteFloatTypes, exact, both,
     FOLD(sum(t, w.axes, w.keeps), cumsum(t, w.axes[0], w.reverse)), sums, total},
    {"sum", floats, near, both, FOLD(sum(t, w.axes, w.keeps), cumsum(t, w.axes[0], w.reverse)), sums, total},
    {"prod", numbers | truths, powers, both, FOLD(prod(t, w.axes, w.keeps), cumprod(t, w.axes[0], w.reverse)), products,
     total},
    {"prod", floats, near, both, FOLD(prod(t, w.axes, w.keeps), cumprod(t, w.axes[0], w.reverse)), products, total},
    {"max", every, special, both, FOLD(reduce_max(t, w.axes, w.keeps), cummax(t, w.axes[0], w.reverse)), largest},
    {"min", every, special, both, FOLD(reduce_min(t, w.axes, w.keeps), cummin(t, w.axes[0], w.reverse)), smallest},
    {"max or NaN", floats, special, both,
     FOLD(reduce_max(t, w.axes, Nans::propagate, w.keeps), cummax(t, w.axes[0], Nans::propagate, w.reverse)),
     largestOrNaN},
    {"min or NaN", floats, special, both,
     FOLD(reduce_min(t, w.axes, Nans::propagate, w.keeps), cummin(t, w.axes[0], Nans::propagate, w.reverse)),
     smallestOrNaN},
    {"and", integers | truths, special, both, FOLD(reduce_and(t, w.axes, w.keeps), cumand(t, w.axes[0], w.reverse)),
     ands},
    {"or", integers | truths, special, both, FOLD(reduce_or(t, w.axes, w.keeps), cumor(t, w.axes[0], w.reverse)), ors},
    {"xor", integers | truths, special, both, FOLD(reduce_xor(t, w.axes, w.keeps), cumxor(t, w.axes[0], w.reverse)),
     xors},
    {"argmax", every, special, reduces, FOLD(argmax(t, w.axes, w.keeps), t), largestPlaces, place},
    {"argmin", every, special, reduces, FOLD(argmin(t, w.axes, w.keeps), t), smallestPlaces, place},
    {"max_at", every, special, reduces, FOLD(atEarly(max_at(t, w.axes[0]), w), t), largest, early, true},
    {"min_at", every, special, reduces, FOLD(atEarly(min_at(t, w.axes[0]), w), t), smallest, early, true},
    {"positions of max_at", every, special, reduces, FOLD(max_at(t, w.axes[0])[1], t), largestPlaces, place, true},
    {"positions of min_at", every, special, reduces, FOLD(min_at(t, w.axes[0])[1], t), smallestPlaces, place, true},
    {"any", truths, special, reduces, FOLD(any(t, w.axes[0]), t), ors, own, true},
    {"all", truths, special, reduces, FOLD(all(t, w.axes[0]), t), ands, own, true},
    {"the first, by a function", numbers | truths, special, both,
     [](const Tile &t, const Way &w) { return folded(t, w, [](Tile p, Tile) { return p; }); }, firstElements, own,
     true},
    {"the largest, by a function", numbers, special, both,
     [](const Tile &t, const Way &w) { return folded(t, w, [](Tile p, Tile q) { return max(p, q); }); }, largest, own,
     true},
    {"the product, by a function", floats, near, both,
     [](const Tile &t, const Way &w) { return folded(t, w, [](Tile p, Tile q) { return p * q; }); }, products, own,
     true},
    {"a recurrence of two tiles", words32, special, both, recurrence, recurrences, own, true},
    {"the element before, of three tiles", words32, special, both, before, elementsBefore, own, true},
    {"sort", every, special, sorts, [](const Tile &t, const Way &w) { return sort(t, w.axes[0], w.reverse); }, nullptr,
     own, true},
    {"sort_at", every, special, sorts,
     [](const Tile &t, const Way &w) { return atEarly(sort_at(t, w.axes[0], w.reverse), w); }, nullptr, early, true},
    {"positions of sort_at", every, special, sorts,
     [](const Tile &t, const Way &w) { return sort_at(t, w.axes[0], w.reverse)[1]; }, nullptr, place, true},
    {"topk", every, special, sorts, [](const Tile &t, const Way &w) { return topk(t, w.count, w.axes[0])[0]; }, nullptr,
     own, true},
    {"positions of topk", every, special, sorts,
     [](const Tile &t, const Way &w) { return topk(t, w.count, w.axes[0])[1]; }, nullptr, place, true},
#undef FOLD
};
constexpr int rows = std::size(folds);
static_assert(rows % 2 != 0 && rows % 3 != 0); // each row meets both GPUs, and has cases at every turn
constexpr int cases = rows * std::size(computedTypes);

/// More arithmetic than is repeated for each reader: eight steps x ← (x xor k) + x.
Tile mixed(Tile t) {
  for (int k = 1; k <= 8; ++k)
    t = (t ^ full(t.type(), t.shape(), k)) + t;
  return t;
}
uint64_t mixedWord(Type type, uint64_t word) {
  for (uint64_t k = 1; k <= 8; ++k)
    word += word ^ k;
  return rawOfInteger(type, static_cast<int64_t>(word));
}

bool takes(int types, Type type) {
  if (types == words32)
    return type == i32 || type == i64;
  return types & (type == boolean ? truths : !isFloat(type) ? integers : bytesOf(type) == 1 ? byteFloatTypes : floats);
}

// --- Cases -----------------------------------------------------------------------------------------------------------

/// Elements of a tile whose extents are rounded up to powers of two.
int64_t paddedCountOf(const Shape &tile) {
  int64_t count = 1;
  for (const int64_t extent : tile)
    count *= static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
  return count;
}

struct Case {
  const Fold *fold = nullptr;
  Type type = f32, result = f32;
  Shape tile, loadedTile, out; // out: what is stored
  bool isTurned = false, isComputed = false, isMixed = false, isTopk = false;
  Way way;
  Window x, y;
  int64_t from = 0, warps = 4;
  Raw have; // the buffer of x
  std::string text;

  explicit Case(int number);
  bool isAlong(int axis) const { return std::ranges::find(way.axes, axis) != way.axes.end(); }
};

/// A word; for floats, NaN in so many of a hundred elements.
uint64_t wordFor(const Fold &fold, Type type, int nans, Draw &draw) {
  const Raw specials = type == boolean ? Raw{0, 1} : specialWords(type);
  if (!isFloat(type)) {
    if (fold.want == ands || fold.want == ors) { // few words decide, so that a lost one is seen
      const auto bit = static_cast<int64_t>(uint64_t{1} << draw.between(0, bytesOf(type) * 8 - 1));
      const int64_t few = !draw.chance(5) ? 0 : type == boolean ? 1 : bit;
      return rawOfInteger(type, fold.want == ors ? few : type == boolean ? !few : ~few);
    }
    if (fold.data == powers) // odd: no product is 0
      return rawOfInteger(type, type == boolean ? !draw.chance(5) : 2 * draw.between(-1000000, 1000000) + 1);
    return draw.chance(50)
               ? specials[draw.between(0, std::ssize(specials) - 1)]
               : rawOfInteger(type, draw.between(type == boolean ? 0 : -1000000, type == boolean ? 1 : 1000000));
  }
  if (draw.chance(nans))
    return rawOfReal(type, NAN);
  if (fold.data == special)
    return specials[draw.between(0, std::ssize(specials) - 1)];
  if (fold.data == near)
    return rawOfReal(type, (0.9 + static_cast<double>(draw.between(0, 199)) / 1000) * (draw.chance(50) ? 1 : -1));
  const double small[] = {-3, -2, -1, -0.0, 1, 2, 3}, factors[] = {1, -1, 2, 0.5};
  return rawOfReal(type, fold.data == powers ? factors[draw.between(0, 3)] : small[draw.between(0, 6)]);
}

Case::Case(int number) : fold(&folds[number % rows]) {
  Draw draw(number * 7919 + 5);
  std::vector<Type> types; // each row has each of its types in turn, on either GPU
  for (const Type each : computedTypes)
    if (takes(fold->types, each))
      types.push_back(each);
  const size_t turn = number / rows;
  type = types[(turn + turn / types.size()) % types.size()];
  result = fold->result == total ? totalOf(type) : fold->result == place ? i32 : type;
  do
    tile = draw.chance(30)   ? Shape{draw.pick({1, 33, 200, 250}), draw.pick({2, 3, 4, 5, 7, 8, 12})}
           : draw.chance(10) ? Shape{draw.between(2, 4), draw.pick({136, 272, 528, 600, 1000})}
                             : draw.shape(2048);
  while (fold->use == sorts && paddedCountOf(tile) > 1024);
  const int rank = static_cast<int>(tile.size());
  way.isScan = fold->use == sorts || (fold->use == both ? draw.chance(50) : fold->use == scans);
  way.reverse = draw.chance(50);
  way.axes = {draw.axis(tile)};
  while (!way.isScan && !fold->hasOneAxis && draw.chance(30))
    if (const int axis = draw.axis(tile); !isAlong(axis))
      way.axes.push_back(axis);
  way.keeps = !way.isScan && !fold->hasOneAxis && draw.chance(40);
  way.count = draw.between(1, tile[way.axes[0]]);
  isTopk = std::string_view(fold->name).ends_with("topk");
  if (isTopk && draw.chance(50)) // few are selected in another way
    way.count = std::max<int64_t>(way.count / 4, 1);
  way.reverse |= isTopk;
  for (int axis = 0; axis < rank; ++axis)
    if (way.isScan || !isAlong(axis))
      out.push_back(isTopk && isAlong(axis) ? way.count : tile[axis]);
    else if (way.keeps)
      out.push_back(1);
  if (out.empty())
    out = {1};
  loadedTile = tile;
  isTurned = rank > 1 && draw.chance(25);
  if (isTurned)
    std::swap(loadedTile[rank - 1], loadedTile[rank - 2]);
  isComputed = draw.chance(30) && (!isFloat(type) || (fold->data == exact && bytesOf(type) > 1));
  isMixed = !isComputed && type != boolean && !isFloat(type) && draw.chance(30);
  if (!isFloat(type) && (fold->data == powers || fold->want == ands || fold->want == ors)) // whose words decide
    isComputed = isMixed = false;
  x = drawWindow(loadedTile, type, true, draw);
  y = drawWindow(out, result, false, draw);
  from = draw.chance(80) ? 0 : draw.pick({-1, 1});
  warps = draw.pick({1, 2, 4, 8});
  if (fold->use == sorts) // GPUs unroll a sort: 32 elements of a thread compile for twenty seconds
    warps = std::max(warps, paddedCountOf(tile) / 128);
  const auto nans = static_cast<int>(fold->data == special ? draw.pick({0, 0, 95, 100}) : draw.pick({0, 0, 0, 0, 2}));
  for (int64_t i = 0; i < x.size; ++i)
    have.push_back(wordFor(*fold, type, nans, draw));
  text = std::string(fold->name) + (way.isScan ? way.reverse ? " scanned in reverse" : " scanned" : "") + " of " +
         nameOf(type) + " " + textOf(tile) + " along " + textOf(Shape(way.axes.begin(), way.axes.end())) +
         (way.keeps ? ", kept" : "") + (isTurned ? ", turned" : "") +
         (isComputed ? ", computed"
          : isMixed  ? ", mixed"
                     : "") +
         ", from " + std::to_string(from) + ", views " + textOf(x.extents) + " " + textOf(x.strides) + ", " +
         textOf(y.extents) + " " + textOf(y.strides);
  for (int &axis : way.axes) // counted from either end
    axis = axis % 2 ? axis - rank : axis;
}

struct FoldConfig {
  int number = 0, warps = 4;
};

void fold(View x, View y, Tile from, FoldConfig cfg) {
  const Case one(cfg.number);
  Offsets at(one.tile.size(), 0);
  at[0] = from;
  Tile t = load(x, at, one.loadedTile);
  if (one.isTurned)
    t = transpose(t);
  if (one.isComputed)
    t = changed(t);
  if (one.isMixed)
    t = mixed(t);
  store(y, Offsets(one.out.size(), 0), reshape(one.fold->apply(t, one.way), one.out));
}
const Kernel foldKernel =
    kernel("fold", fold, {field("number", &FoldConfig::number), field("warps", &FoldConfig::warps)});

// --- The property ----------------------------------------------------------------------------------------------------

/// The word of an element of the tile.
uint64_t wordAt(const Case &one, Shape at) {
  if (one.isTurned)
    std::swap(at[at.size() - 1], at[at.size() - 2]);
  at[0] += one.from;
  bool isInside = true;
  for (size_t axis = 0; axis < at.size(); ++axis)
    isInside &= at[axis] >= 0 && at[axis] < one.x.extents[axis];
  const uint64_t word = isInside ? one.have[one.x.placeOf(at)] : 0;
  return one.isComputed ? changedWord(one.type, word) : one.isMixed ? mixedWord(one.type, word) : word;
}

/// An element of the result, and how far it may be off.
struct Want {
  uint64_t word = 0;
  double slack = 0;
};

/// The results of a line in the order of the scan; of a reduction the last one is the result.
std::vector<Want> expectedResults(const Case &one, const Line &line) {
  std::vector<Want> wants;
  const auto isKept = [&](size_t at) { return one.fold->result != early || static_cast<int64_t>(at) < one.way.count; };
  if (one.fold->use == sorts) {
    for (const size_t at : orderOf(line, one.way.reverse))
      wants.push_back({one.fold->result == place ? at : isKept(at) ? line.words[at] : 0});
    return wants;
  }
  if (one.fold->result == early)
    return {{isKept(firsts(line, one.fold->want == largest).back()) ? one.fold->want(line).back() : 0}};
  double sizes = 0;
  for (const uint64_t word : one.fold->want(line)) {
    wants.push_back({word});
    if (one.fold->data != near)
      continue;
    const bool isSum = one.fold->want == sums;
    const double each = one.type == f64 ? 0x1p-52 : 0x1p-24, last = one.type == bf16  ? 0x1p-8
                                                                    : one.type == f16 ? 0x1p-11
                                                                                      : 0;
    const double size = std::abs(toDouble(one.type, word));
    sizes += std::abs(static_cast<double>(line.number(wants.size() - 1)));
    wants.back().slack = static_cast<double>(wants.size()) * each * (isSum ? sizes : 2 * size) + 2.02 * last * size;
  }
  return wants;
}

class Folds : public Drawn {};

TEST_P(Folds, AreLeftFolds) {
  Case one(number);
  SCOPED_TRACE(one.text);
  const Raw untouched(one.y.size, wordOf(one.result, 1));
  const GuardedPages x(*device, one.type, one.have), y(*device, one.result, untouched);
  launch(foldKernel, {one.x.of(x, one.type), one.y.of(y, one.result), one.from},
         FoldConfig{number, static_cast<int>(one.warps)});
  for (int &axis : one.way.axes)
    axis += axis < 0 ? static_cast<int>(one.tile.size()) : 0;
  std::map<Shape, std::pair<Line, std::vector<Shape>>> lines; // by the index without the axes
  for (int64_t i = 0; i < countOf(one.tile); ++i) {
    const Shape at = indexOf(i, one.tile);
    Shape key;
    for (size_t axis = 0; axis < at.size(); ++axis)
      if (!one.isAlong(static_cast<int>(axis)))
        key.push_back(at[axis]);
      else if (one.way.isScan || one.way.keeps)
        key.push_back(0);
    auto &[line, indices] = lines[key.empty() ? Shape{0} : key];
    line.type = one.type;
    line.words.push_back(wordAt(one, at));
    indices.push_back(at);
  }
  const bool isReversed = one.fold->use != sorts && one.way.isScan && one.way.reverse;
  std::map<int64_t, Want> wants; // by the place in the buffer
  for (auto &[key, entry] : lines) {
    auto &[line, indices] = entry;
    if (isReversed)
      std::ranges::reverse(line.words);
    const std::vector<Want> results = expectedResults(one, line);
    for (size_t i = one.way.isScan ? 0 : results.size() - 1; i < results.size(); ++i) {
      const Shape at = one.way.isScan ? indices[isReversed ? results.size() - 1 - i : i] : key;
      bool isStored = true;
      for (size_t axis = 0; axis < at.size(); ++axis)
        isStored &= at[axis] < std::min(one.y.extents[axis], one.out[axis]);
      if (isStored)
        wants[one.y.placeOf(at)] = results[i];
    }
  }
  const Raw got = y.read(one.result);
  const bool signOfZero = one.fold->want == sums || (one.fold->use == sorts && one.fold->result == early);
  for (size_t place = 0; place < got.size(); ++place) {
    const auto want = wants.find(static_cast<int64_t>(place));
    if (want == wants.end())
      ASSERT_EQ(got[place], untouched[place]) << "element " << place << " of the buffer, outside the view";
    else if (const auto [word, slack] = want->second; slack > 0)
      ASSERT_NEAR(toDouble(one.result, got[place]), toDouble(one.result, word), slack) << "element " << place;
    else
      ASSERT_TRUE(same(one.result, got[place], word, signOfZero))
          << "element " << place << " of the buffer is " << got[place] << ", expected " << word;
  }
}

KILN_ON_CASES(Folds, cases, processors);

// --- Mean and population variance against double precision, along rows, columns and both -----------------------------

struct MomentsConfig {
  int rows = 1, columns = 1;
};

/// means and vars hold a number for each row, then for each column, then one for all elements.
void moments(View x, View means, View vars, MomentsConfig cfg) {
  const int R = cfg.rows, C = cfg.columns;
  Tile a = load(x, {0, 0}, {R, C}); // (R, C)
  store(means, {0}, squeeze(mean(a, -1, keep), -1));
  store(means, {R}, mean(a, 0));
  store(means, {R + C}, mean(a, everywhere));
  store(vars, {0}, var(a));
  store(vars, {R}, squeeze(var(a, 0, keep), 0));
  store(vars, {R + C}, var(a, {0, 1}));
}
const Kernel momentsKernel =
    kernel("moments", moments, {field("rows", &MomentsConfig::rows), field("columns", &MomentsConfig::columns)});

class Moments : public Semantics {};

// The numbers are far from 0 compared with their spread: E[x²] − E[x]² would lose the variance in f32.
TEST_P(Moments, AreThoseOfDoublePrecision) {
  std::mt19937 random(5);
  for (const Type type : floatTypes)
    for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {17, 64}, {4, 768}}) {
      Raw raw;
      for (int64_t i = 0; i < rows * columns; ++i)
        raw.push_back(rawOfReal(type, 1000 + static_cast<double>(random() % 2001) / 250));
      const int64_t count = rows + columns + 1;
      const Tensor x = tensor(type, {rows, columns}, raw), means(device, type, {count}), vars(device, type, {count});
      launch(momentsKernel, {x.ref(), means.ref(), vars.ref()},
             MomentsConfig{static_cast<int>(rows), static_cast<int>(columns)});
      const Raw gotMeans = read(means), gotVars = read(vars);
      for (int64_t i = 0; i < count; ++i) {
        std::vector<double> numbers;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c)
            if (i < rows ? r == i : i == count - 1 || c == i - rows)
              numbers.push_back(toDouble(type, raw[r * columns + c]));
        const auto n = static_cast<double>(numbers.size());
        double total = 0, squares = 0;
        for (const double number : numbers)
          total += number;
        for (const double number : numbers)
          squares += (number - total / n) * (number - total / n);
        // The relative error of a sum of n terms is n · ε, that of the division ε, and the result is rounded to its own
        // type. If the mean has the error d, the squared differences sum to n · d² more, and each has the error 3 ε.
        const double epsilon = type == f64 ? 0x1p-53 : 0x1p-24;
        const double rounding = type == bf16 ? 0x1p-8 : type == f16 ? 0x1p-11 : epsilon;
        const double want = total / n, off = (n + 1) * epsilon * want, variance = squares / n;
        ASSERT_NEAR(toDouble(type, gotMeans[i]), want, off + rounding * want)
            << nameOf(type) << " " << rows << "x" << columns << ": mean " << i;
        ASSERT_NEAR(toDouble(type, gotVars[i]), variance,
                    ((n + 4) * epsilon + rounding) * variance + 1.01 * off * off + 0x1p-24 * (type == f16))
            << nameOf(type) << " " << rows << "x" << columns << ": variance " << i;
      }
    }
}

KILN_ON_PROCESSORS(Moments);

} // namespace
