// Products of tiles: one property for all their forms. Small whole numbers and integers that wrap make every sum exact,
// so each element of the result has one value. A case is drawn by its number: types and precision, extents, batches,
// the form of each operand in memory, views that end within the tiles, a loop over K, and epilogues: a mask, a second
// product, a transposition, additions and reductions. `Products.AreExact/cpu_17` is case 17 on the CPU.

#include "test/runtime/semantics/drawn.h"

#include <climits>
#include <cmath>
#include <optional>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int cases = 300;
/// M and N of further cases: results larger than a GPU's shared memory (256 KB; 96 to 227 KB), whose layout changes in
/// rounds.
constexpr int64_t large[][2] = {{256, 256}, {192, 256}, {256, 128}};

// --- Operands --------------------------------------------------------------------------------------------------------

enum class Form { loaded, doubled, least0, joined, made, forms };
const char *const formNames[] = {"loaded", "doubled", "max(…, 0)", "joined", "made"};

/// A matrix (…, rows, columns) of the product, and how it is stored.
struct Operand {
  Type stored = f32, type = f32; // it may be cast after the load
  Form form = Form::loaded;
  Shape shape;            // of the tile
  std::vector<int> order; // dimension i of the tile is dimension order[i] in memory, not counting `further` ones
  Shape further;          // dimensions of the view of which the tile has one position each, the last
  bool isBetween = false; // they lie between the last two dimensions in memory, and otherwise in front
  Window window;
  Cache cache = Cache::evict_normal; // changes nothing

  /// The type for whose numbers they are: only integer products have large ones.
  Type numbers() const { return stored == type ? type : f32; }
  /// The dimensions in memory of a list with one entry for each dimension of the tile.
  template <class List> List inMemory(const List &list, const List &others) const {
    List placed(list.size(), list[0]);
    for (size_t i = 0; i < list.size(); ++i)
      placed[order[i]] = list[i];
    placed.insert(isBetween ? placed.end() - 1 : placed.begin(), others.begin(), others.end());
    return placed;
  }
};

/// The word of the element of a buffer: a small number, or any integer.
int64_t numberOf(Type type, int64_t place) {
  if (type == i8 || type == u8)
    return integerOf(type, rawOfInteger(type, place * 37 + place / 7));
  return (place * 5 + place / 11) % 7 - 3;
}
/// The number of a `made` operand at a row and a column.
int64_t madeAt(Type type, int64_t row, int64_t column) { return (row * 3 + column * 2) % 5 - (type == u8 ? 0 : 2); }

Operand drawOperand(Type type, Shape shape, Draw &draw) {
  Operand operand{type, type, Form::loaded, shape};
  const size_t rank = shape.size();
  if (type == bf16 || type == f16 || type == f32)
    if (const Type types[] = {i8, bf16, f16, f32}; draw.chance(20))
      operand.stored = types[draw.between(0, 3)];
  if (draw.chance(35) && type != f8e4m3 && type != f8e5m2)
    operand.form = static_cast<Form>(draw.between(1, static_cast<int>(Form::forms) - 1));
  if ((operand.form == Form::joined && shape.back() % 2 != 0) ||
      (type != f32 && type != f64 && type != bf16 && type != f16 && operand.form != Form::made))
    operand.form = Form::loaded;
  for (size_t i = 0; i < rank; ++i)
    operand.order.push_back(static_cast<int>(i));
  if (rank > 2 && draw.chance(30))
    std::swap(operand.order[rank - 3], operand.order[rank - 2]);
  if (draw.chance(45))
    std::swap(operand.order[rank - 2], operand.order[rank - 1]);
  while (operand.further.size() + rank < 5 && draw.chance(15))
    operand.further.push_back(draw.between(1, 3));
  operand.isBetween = draw.chance(40);
  operand.cache = static_cast<Cache>(draw.pick({0, 0, 1, 2}));
  operand.window = drawWindow(operand.inMemory(shape, operand.further), operand.stored, false, draw);
  return operand;
}

/// Loads the tile at offsets of its last two dimensions.
Tile factorOf(const Operand &operand, View view, const Tile &row, const Tile &column) {
  if (operand.form == Form::made) {
    const Tile i = unsqueeze(iota(operand.shape.end()[-2]), 1), j = unsqueeze(iota(operand.shape.back()), 0);
    return broadcast(cast((i * 3 + j * 2) % 5 - (operand.type == u8 ? 0 : 2), operand.type), operand.shape);
  }
  Offsets offsets(operand.shape.size(), 0), others;
  offsets.end()[-2] = row;
  offsets.back() = column;
  for (const int64_t extent : operand.further)
    others.emplace_back(extent - 1);
  const auto load = [&](Shape shape, const Offsets &at) {
    const Shape stored = operand.inMemory(shape, Shape());
    const Tile tile =
        kiln::load(view, operand.inMemory(at, others),
                   operand.inMemory(shape, Shape(operand.isBetween ? others.size() : 0, 1)), {.cache = operand.cache});
    return transpose(reshape(tile, stored), operand.order);
  };
  Tile tile;
  if (operand.form == Form::joined) { // element 2 i of the operand is i, element 2 i + 1 that of the second half
    Shape half = operand.shape;
    half.back() /= 2;
    Offsets second = offsets;
    second.back() = column + half.back();
    tile = interleave(load(half, offsets), load(half, second));
  } else {
    tile = load(operand.shape, offsets);
  }
  tile = operand.type == operand.stored ? tile : cast(tile, operand.type);
  return operand.form == Form::doubled ? tile + tile : operand.form == Form::least0 ? max(tile, 0) : tile;
}

/// An element of the operand, in C++.
int64_t elementOf(const Operand &operand, Shape at, int64_t row, int64_t column) {
  if (operand.form == Form::made)
    return madeAt(operand.type, at.end()[-2], at.back());
  if (operand.form == Form::joined)
    at.back() = at.back() / 2 + at.back() % 2 * operand.shape.back() / 2;
  at.end()[-2] = wrappedSum(row, at.end()[-2]);
  at.back() = wrappedSum(column, at.back());
  Shape others;
  for (const int64_t extent : operand.further)
    others.push_back(extent - 1);
  const Shape place = operand.inMemory(at, others);
  for (size_t axis = 0; axis < place.size(); ++axis)
    if (place[axis] < 0 || place[axis] >= operand.window.extents[axis])
      return 0;
  const int64_t number = numberOf(operand.numbers(), operand.window.placeOf(place));
  return operand.form == Form::doubled  ? 2 * number
         : operand.form == Form::least0 ? std::max<int64_t>(number, 0)
                                        : number;
}

// --- Cases -----------------------------------------------------------------------------------------------------------

enum class Last { none, scaled, matrix, row, column, rowSums, lessMost, lasts };
const char *const lastNames[] = {"",           ", · 2 + 1", ", + matrix",        ", + row",
                                 ", + column", ", summed",  ", less its largest"};

struct Case {
  Type sums = f32;
  Precision precision = Precision::ieee;
  int64_t m = 1, n = 1, k = 1, rounds = 1; // k: of a round
  Shape leading;
  Operand a, b, z; // z: of the second product or the addition
  Numbers numbers;
  Number row, column, term;              // where a, b begin
  bool isKnown = false;                  // the extents are known while compiling
  bool isLoop = false, isKept = false;   // rounds are a loop; each has b of the first one
  bool hasStart = false, isOver = false; // c is added to, and is the buffer of a
  bool isMasked = false, isWide = false; // with a limit of i64
  int mask = 0;
  int64_t limit = 0, masked = 0;            // masked: the value elsewhere
  bool isChained = false, isTurned = false; // turned before the second product, or before the store
  Last last = Last::none;
  bool isTwice = false; // the product itself is stored, too
  Window c;
  int64_t warps = 4, stages = 2;

  Case(int number, bool isSmall);
  Operand drawFactor(Type type, const Shape &whole, const Shape &part, Draw &draw) const;
  void drawEpilogue(const struct Kind &kind, Draw &draw);
  std::string text() const;
  /// Extents of the product, of what the chain and the transposition give, and of the result.
  Shape product() const {
    Shape shape = leading;
    shape.insert(shape.end(), {m, n});
    return shape;
  }
  Shape turned() const { return isTurned ? Shape{n, m} : Shape{m, n}; }
  Shape moved() const {
    Shape shape = leading;
    shape.insert(shape.end(), {turned()[0], isChained ? z.shape.back() : turned()[1]});
    return shape;
  }
  Shape result() const {
    Shape shape = moved();
    if (last == Last::rowSums)
      shape.pop_back();
    return shape;
  }
};

const struct Kind {
  Type left, right;
  Precision precision = Precision::ieee;
} kinds[] = {{f32, f32},
             {bf16, bf16},
             {f16, f16},
             {i8, i8},
             {f64, f64},
             {f32, f32, Precision::tf32},
             {f8e4m3, f8e4m3},
             {u8, i8},
             {bf16, bf16},
             {f8e4m3, f8e5m2},
             {f32, f32},
             {f32, f32, Precision::tf32x3},
             {u8, u8},
             {f8e5m2, f8e5m2, Precision::tf32},
             {f32, f32, Precision::bf16x3},
             {i8, u8},
             {f8e5m2, f8e4m3}};

Case::Case(int number, bool isSmall) {
  Draw draw(number * 7919 + 17);
  const bool isLarge = number >= cases;
  const Kind &kind = kinds[isLarge ? 1 : number % std::size(kinds)];
  precision = kind.precision;
  sums = kind.left == i8 || kind.left == u8 ? i32 : kind.left == f64 ? f64 : f32;
  m = draw.pick({1, 5, 8, 16, 17, 24, 32, 33, 64});
  n = draw.pick({1, 7, 8, 16, 31, 32, 33, 40, 64, 80});
  k = draw.pick({1, 3, 4, 7, 8, 16, 20, 24, 32, 45, 64, 96});
  while (draw.chance(30) && leading.size() < 3 && countOf(leading) < 5)
    leading.push_back(draw.pick({1, 2, 2, 3, 4}));
  const int64_t most = (isSmall && sums == f64 ? 1024 : 4096) / countOf(leading);
  while (m * n > most || m * k > most || k * n > most)
    for (int64_t *extent : {&m, &n, &k})
      *extent = (*extent + 1) / 2;
  if (isLarge) {
    leading.clear();
    m = large[number - cases][0];
    n = large[number - cases][1];
    k = 16;
  }
  isLoop = draw.chance(45);
  rounds = isLoop ? draw.pick({0, 1, 2, 3, 3}) : 1;
  isKept = isLoop && draw.chance(15);
  const int64_t depth = std::max<int64_t>(k * rounds, 1); // the views hold all rounds, and may end within the last tile
  a = drawFactor(kind.left, {m, depth}, {m, k}, draw);
  b = drawFactor(kind.right, {depth, n}, {k, n}, draw);
  isKnown = draw.chance(30);
  for (Number *offset : {&row, &column, &term})
    *offset = numbers.draw(draw.chance(75) ? 0 : draw.pick({3, -3, -5, 2, 20, 60, int64_t(1) << 61}), draw);
  numbers.complete();
  drawEpilogue(kind, draw);
  warps = isLarge ? 8 : draw.pick({1, 2, 4, 8});
  stages = draw.between(1, 5);
}

/// An operand in a view for `whole` matrices, of which `part` is multiplied at a time.
Operand Case::drawFactor(Type type, const Shape &whole, const Shape &part, Draw &draw) const {
  Shape shape = leading;
  shape.insert(shape.end(), whole.begin(), whole.end());
  Operand factor = drawOperand(type, shape, draw);
  std::copy(part.begin(), part.end(), factor.shape.end() - 2);
  if (factor.form == Form::joined && part.back() % 2 != 0)
    factor.form = Form::loaded;
  return factor;
}

void Case::drawEpilogue(const Kind &kind, Draw &draw) {
  const bool isWhole = sums == i32;
  hasStart = draw.chance(40);
  isMasked = draw.chance(35);
  mask = static_cast<int>(draw.between(0, triangleForms - 1));
  isWide = draw.chance(50);
  const int64_t extra = mask == 1 || mask == 4 ? 1 : 0; // these masks add 1
  limit = draw.chance(65) ? draw.between(-m - 3, n + 3)
          : isWide        ? draw.pick({INT64_MIN, INT64_MIN + 40, int64_t(INT32_MIN) - 1, int64_t(INT32_MAX) + 1,
                                       INT64_MAX - 40, INT64_MAX - extra})
                          : draw.pick({INT32_MIN, INT32_MIN + 40, INT32_MAX - 40, INT32_MAX - extra});
  masked = draw.pick({0, 0, -1});
  isChained = leading.empty() && kind.left == kind.right && !isWhole && draw.chance(isMasked ? 60 : 25);
  isTurned = leading.empty() && draw.chance(25);
  last = draw.chance(40) ? Last::none : static_cast<Last>(draw.between(1, static_cast<int>(Last::lasts) - 1));
  const bool isSum = last == Last::matrix || last == Last::row || last == Last::column;
  if ((isWhole && last == Last::lessMost) || (isChained && isSum))
    last = Last::scaled;
  const int64_t height = turned()[0], width = turned()[1];
  z = drawOperand(kind.left,
                  isChained              ? Shape{width, draw.pick({8, 16, 17, 32})}
                  : last == Last::row    ? Shape{1, width}
                  : last == Last::column ? Shape{height, 1}
                                         : Shape{height, width},
                  draw);
  isTwice = draw.chance(20);
  c = drawWindow(result(), sums, false, draw);
  isOver = draw.chance(30) && a.stored == sums && !hasStart;
  if (isOver)
    a.window.size = c.size = std::max(a.window.size, c.size);
}

std::string Case::text() const {
  const auto textOfOperand = [](const Operand &operand) {
    return std::string(nameOf(operand.stored)) + "→" + nameOf(operand.type) + " " + textOf(operand.shape) + " " +
           formNames[static_cast<int>(operand.form)] + ", view " + textOf(operand.window.extents) + " by " +
           textOf(operand.window.strides);
  };
  return textOfOperand(a) + "\n" + textOfOperand(b) + "\n" + precisionNames[static_cast<int>(precision)] + ", " +
         std::to_string(rounds) + (isLoop ? " rounds" : " round") + (isKept ? " of one right operand" : "") +
         ", from " + textOf({row.value, column.value, term.value}) + (hasStart ? ", added to c" : "") +
         (isOver ? ", in place" : "") +
         (isMasked ? ", mask " + std::to_string(mask) + " up to " + std::to_string(limit) : "") +
         (isTurned ? ", turned" : "") + (isChained ? ", times " + textOfOperand(z) : "") +
         lastNames[static_cast<int>(last)] + (isTwice ? ", twice" : "");
}

struct CaseConfig {
  int number = 0, warps = 4, stages = 2;
  bool isSmall = false;
};

void multiply(View a, View b, View z, View c, View product, View list, Tile p, Tile q, Tile r, Tile s, Tile limit,
              CaseConfig cfg) {
  const Case one(cfg.number, cfg.isSmall);
  if (one.isKnown)
    for (const View &view : {a, b, c})
      for (int axis = 0; axis < view.rank(); ++axis)
        (void)view.extent(axis);
  const Sources scope{{p, q, r, s}, list};
  const Tile row = scope.tile(one.row), column = scope.tile(one.column), term = scope.tile(one.term);
  const Offsets zero(one.result().size(), 0);
  Tile acc = zeros(one.sums, one.product()); // (…, M, N)
  const std::optional<Tile> first = one.isKept ? std::optional(factorOf(one.b, b, term, column)) : std::nullopt;
  const auto add = [&](const Tile &k) {
    const Tile right = first ? *first : factorOf(one.b, b, term + k, column); // (…, K, N)
    acc = dot(factorOf(one.a, a, row, term + k), right, acc, one.precision);
  };
  if (one.isLoop)
    for (Tile k : range(0, one.rounds * one.k, one.k))
      add(k);
  else
    add(0);
  if (one.isTwice)
    store(product, Offsets(acc.rank(), 0), acc);
  if (one.isChained)
    acc = clamp(acc, -4, 4); // so that the operand of the next product is exact in its type
  if (one.isMasked)
    acc = where(triangle(one.product(), one.isWide ? limit : cast(limit, i32), one.mask), acc,
                full(one.sums, one.product(), one.masked));
  if (one.isTurned && !one.isChained)
    acc = transpose(acc);
  if (one.isChained) {
    Tile left = cast(acc, one.b.type);
    acc = dot(one.isTurned ? transpose(left) : left, factorOf(one.z, z, 0, 0), one.precision);
  }
  const auto further = [&] { return cast(factorOf(one.z, z, 0, 0), one.sums); };
  switch (one.last) {
  case Last::scaled:
    acc = acc * 2 + 1;
    break;
  case Last::matrix:
  case Last::row:
  case Last::column:
    acc = acc + further();
    break;
  case Last::rowSums:
    acc = sum(acc, -1);
    break;
  case Last::lessMost:
    acc = acc - reduce_max(acc, -1, keep);
    break;
  default:
    break;
  }
  if (one.hasStart)
    acc = acc + load(c, zero, one.result(), {.cache = one.z.cache});
  store(c, zero, acc, {.cache = one.b.cache});
}
const Kernel multiplyKernel =
    kernel("multiply", multiply, {"a", "b", "z", "c", "product", "list", "p", "q", "r", "s", "limit"},
           {field("number", &CaseConfig::number), field("warps", &CaseConfig::warps),
            field("stages", &CaseConfig::stages), field("is_small", &CaseConfig::isSmall)});

// --- The property ----------------------------------------------------------------------------------------------------

/// A tile in C++.
struct Values {
  Shape shape;
  std::vector<int64_t> values;
  explicit Values(const Shape &shape) : shape(shape), values(countOf(shape)) {}
  int64_t &at(const Shape &index) { return values[test::numberOf(index, shape)]; }
  template <class Function> void each(Function function) {
    for (int64_t i = 0; i < std::ssize(values); ++i)
      function(indexOf(i, shape), values[i]);
  }
};

Values valuesOf(const Operand &operand, int64_t row, int64_t column) {
  Values numbers(operand.shape);
  numbers.each([&](const Shape &at, int64_t &value) { value = elementOf(operand, at, row, column); });
  return numbers;
}

Values productOf(const Case &one) {
  Values product(one.product());
  for (int64_t round = 0; round < one.rounds; ++round) {
    const int64_t term = wrappedSum(one.term.value, round * one.k);
    const Values a = valuesOf(one.a, one.row.value, term),
                 b = valuesOf(one.b, one.isKept ? one.term.value : term, one.column.value);
    for (int64_t i = 0; i < std::ssize(product.values); ++i) {
      const int64_t pair = i / (one.m * one.n);
      for (int64_t s = 0; s < one.k; ++s)
        product.values[i] += a.values[i / one.n * one.k + s] * b.values[(pair * one.k + s) * one.n + i % one.n];
    }
  }
  return product;
}

Values resultOf(const Case &one, const Values &product) {
  Values kept = product;
  if (one.isMasked)
    kept.each(
        [&](const Shape &at, int64_t &value) { value = isInTriangle(at, one.limit, one.mask) ? value : one.masked; });
  Values moved(one.moved());
  moved.each([&](const Shape &at, int64_t &value) {
    const auto element = [&](int64_t column) {
      Shape from = at;
      from.back() = column;
      if (one.isTurned)
        std::swap(from.end()[-2], from.back());
      return kept.at(from);
    };
    if (!one.isChained)
      value = element(at.back());
    for (int64_t s = 0; one.isChained && s < one.z.shape[0]; ++s)
      value += std::clamp<int64_t>(element(s), -4, 4) * elementOf(one.z, {s, at.back()}, 0, 0);
  });
  Values result(one.result());
  moved.each([&](Shape at, int64_t value) {
    if (one.last == Last::rowSums) {
      at.pop_back();
      result.at(at) += value;
    } else if (one.last == Last::lessMost) {
      Shape other = at;
      int64_t largest = value;
      for (other.back() = 0; other.back() < moved.shape.back(); ++other.back())
        largest = std::max(largest, moved.at(other));
      result.at(at) = value - largest;
    } else {
      const int64_t i = at.end()[-2], j = at.back();
      result.at(at) = one.last == Last::scaled   ? 2 * value + 1
                      : one.last == Last::matrix ? value + elementOf(one.z, {i, j}, 0, 0)
                      : one.last == Last::row    ? value + elementOf(one.z, {0, j}, 0, 0)
                      : one.last == Last::column ? value + elementOf(one.z, {i, 0}, 0, 0)
                                                 : value;
    }
  });
  return result;
}

class Products : public Drawn {
protected:
  /// The words of the pages of a window. What is not in the window must not be read.
  static Raw wordsFor(const Window &window, Type type, Type numbers) {
    Raw words(window.size, isFloat(type) ? rawOfReal(type, NAN) : rawOfInteger(type, 101));
    for (int64_t i = 0; i < countOf(window.extents); ++i) {
      const int64_t place = window.placeOf(indexOf(i, window.extents));
      words[place] = wordOf(type, numberOf(numbers, place));
    }
    return words;
  }
  GuardedPages pagesFor(const Operand &operand) {
    return {*device, operand.stored, wordsFor(operand.window, operand.stored, operand.numbers())};
  }
};

TEST_P(Products, AreExact) {
  const auto *gpu = std::get_if<GpuFacts>(&device->target().facts);
  const bool isSmall = gpu && gpu->ctaSharedBytes < 100 << 10; // sm_86, sm_89 and sm_120
  const Case one(number, isSmall);
  SCOPED_TRACE(one.text());
  const GuardedPages a = pagesFor(one.a), b = pagesFor(one.b), z = pagesFor(one.z),
                     other(*device, one.sums, wordsFor(one.c, one.sums, f32));
  const GuardedPages &c = one.isOver ? a : other;
  const Raw before = c.read(one.sums);
  const Shape &numbers = one.numbers.arguments;
  const Tensor list = tensor(i64, {std::ssize(one.numbers.loaded)}, one.numbers.words());
  const Tensor twice(device, one.sums, one.product());
  launch(multiplyKernel,
         {one.a.window.of(a, one.a.stored), one.b.window.of(b, one.b.stored), one.z.window.of(z, one.z.stored),
          one.c.of(c, one.sums), twice, list, numbers[0], numbers[1], numbers[2], numbers[3], one.limit},
         CaseConfig{number, static_cast<int>(one.warps), static_cast<int>(one.stages), isSmall});
  const Values product = productOf(one);
  Values result = resultOf(one, product);
  Raw want = before, products;
  for (const int64_t value : product.values)
    products.push_back(wordOf(one.sums, value));
  for (int64_t i = 0; i < countOf(one.c.extents); ++i) {
    const Shape at = indexOf(i, one.c.extents);
    const int64_t place = one.c.placeOf(at);
    want[place] = wordOf(one.sums, result.at(at) + (one.hasStart ? numberOf(f32, place) : 0));
  }
  const Raw got = c.read(one.sums), gotProducts = read(twice);
  for (size_t place = 0; place < got.size(); ++place)
    ASSERT_TRUE(same(one.sums, got[place], want[place], false))
        << "element " << place << " of the buffer is " << got[place] << ", expected " << want[place];
  for (size_t i = 0; one.isTwice && i < products.size(); ++i)
    ASSERT_TRUE(same(one.sums, gotProducts[i], products[i], false)) << "element " << i << " of the product";
}

KILN_ON_CASES(Products, cases + static_cast<int>(std::size(large)), everything);

// --- Products with triangular masks whose limits no distance reaches. product_test draws other limits ----------------

constexpr int64_t M = 44, N = 50, K = 18;

struct MaskConfig {
  int form = 0;
};
const std::vector<Field> maskFields = {field("form", &MaskConfig::form)};

/// masked = where(mask, a · b, −1); over = P · c and turned = Pᵀ · d, where P = where(mask, a · b, 0).
void underMasks(View a, View b, View c, View d, View masked, View over, View turned, Tile limit, MaskConfig cfg) {
  Tile mask = triangle({M, N}, limit, cfg.form);
  Tile s = dot(load(a, {0, 0}, {M, K}), load(b, {0, 0}, {K, N})); // (M, N)
  store(masked, {0, 0}, where(mask, s * 2.0, -1.0));
  Tile p = where(mask, s, 0.0); // (M, N)
  p = cast(p, c.type());
  store(over, {0, 0}, dot(p, load(c, {0, 0}, {N, K})));              // (M, K)
  store(turned, {0, 0}, dot(transpose(p), load(d, {0, 0}, {M, K}))); // (N, K)
}
const Kernel underMasksKernel = kernel("under_masks", underMasks, maskFields);

class Triangles : public Semantics {
protected:
  /// Small whole numbers, whose sums of products are exact.
  std::vector<double> numbers(int64_t count, int64_t step) {
    std::vector<double> values(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<double>(i * step % 7 - 3);
    return values;
  }
  Tensor floats(Shape shape, const std::vector<double> &values, Type type = f32) {
    Raw raw;
    for (double value : values)
      raw.push_back(rawOfReal(type, value));
    return tensor(type, shape, raw);
  }
  void expectEqual(const Tensor &got, const std::vector<double> &want, const std::string &what) {
    const Raw raw = read(got);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_TRUE(same(f32, raw[i], rawOfReal(f32, want[i]), false))
          << what << ", element " << i << ": expected " << want[i] << ", but got " << toDouble(f32, raw[i]);
  }
  /// Launches underMasks with a limit of i32 or i64 and compares the stored results.
  template <class Limit> void expectProducts(Type type, int form, Limit limit) {
    const Tensor left = floats({M, K}, a, type), right = floats({K, N}, b, type), below = floats({N, K}, c, type),
                 beside = floats({M, K}, d, type);
    const Tensor masked = floats({M, N}, std::vector<double>(M * N)), over = floats({M, K}, std::vector<double>(M * K)),
                 turned = floats({N, K}, std::vector<double>(N * K));
    launch(underMasksKernel,
           {left.ref(), right.ref(), below.ref(), beside.ref(), masked.ref(), over.ref(), turned.ref(), limit},
           "form=" + std::to_string(form));
    std::vector<double> wantMasked, wantOver(M * K), wantTurned(N * K);
    for (int64_t m = 0; m < M; ++m)
      for (int64_t n = 0; n < N; ++n) {
        const bool inside = isInTriangle({m, n}, limit, form);
        const double s = product(m, n), p = inside ? s : 0;
        wantMasked.push_back(inside ? 2 * s : -1);
        for (int64_t k = 0; k < K; ++k) {
          wantOver[m * K + k] += p * c[n * K + k];
          wantTurned[n * K + k] += p * d[m * K + k];
        }
      }
    const std::string where =
        std::string(nameOf(type)) + ", form " + std::to_string(form) + ", limit " + std::to_string(limit);
    expectEqual(masked, wantMasked, "masked, " + where);
    expectEqual(over, wantOver, "over, " + where);
    expectEqual(turned, wantTurned, "turned, " + where);
  }
  const std::vector<double> a = numbers(M * K, 5), b = numbers(K * N, 3), c = numbers(N * K, 2), d = numbers(M * K, 4);
  double product(int64_t m, int64_t n) const {
    double sum = 0;
    for (int64_t k = 0; k < K; ++k)
      sum += a[m * K + k] * b[k * N + n];
    return sum;
  }
};

// Limits that no distance reaches, as that of a window without an end: no position that follows from them may wrap.
TEST_P(Triangles, ALimitMayBeAnyNumber) {
  for (int form = 0; form < triangleForms; ++form) {
    const int64_t extra = form == 1 || form == 4 ? 1 : 0; // these masks add 1
    for (const int32_t limit : {INT32_MIN, INT32_MIN + 40, INT32_MAX - 40, INT32_MAX - static_cast<int32_t>(extra)})
      expectProducts(f32, form, limit);
    for (const int64_t limit : {INT64_MIN, INT64_MIN + 40, int64_t{INT32_MIN} - 1, int64_t{8}, int64_t{INT32_MAX} + 1,
                                INT64_MAX - 40, INT64_MAX - extra})
      expectProducts(f32, form, limit);
  }
}

KILN_ON_PROCESSORS(Triangles);

} // namespace
