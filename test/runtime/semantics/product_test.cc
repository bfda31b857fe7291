// Products of tiles that extend past their views: elements outside count as zero, for all facts of the views.

#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <fmt/format.h>

namespace {

using namespace kiln;
using namespace kiln::test;

constexpr int64_t TM = 24, TN = 80, TK = 24; // the tiles
constexpr int64_t M = 19, N = 53, K = 21;    // the matrices

struct HangingConfig {
  bool ta = false, tb = false; // a is stored as (K, M), b as (N, K)
  bool known = false;          // the views' extents are known while compiling
  bool fixed = false;          // the corner is known while compiling: (3, 7, 2)
  bool total = false;          // only the sums of the product's rows are looked at
};
const std::vector<Field> hangingFields = {field("ta", &HangingConfig::ta), field("tb", &HangingConfig::tb),
                                          field("known", &HangingConfig::known), field("fixed", &HangingConfig::fixed),
                                          field("total", &HangingConfig::total)};

/// c = a · b from row m, column n and term k on; with `total` its first column is that of the sums of rows.
void hanging(View a, View b, View c, Tile m, Tile n, Tile k, HangingConfig cfg) {
  if (cfg.known)
    for (int axis : {0, 1})
      (void)(a.extent(axis) + b.extent(axis));
  if (cfg.fixed) {
    m = full(i64, {}, 3);
    n = full(i64, {}, 7);
    k = full(i64, {}, 2);
  }
  Tile left = cfg.ta ? transpose(load(a, {k, m}, {TK, TM})) : load(a, {m, k}, {TM, TK});  // (TM, TK)
  Tile right = cfg.tb ? transpose(load(b, {n, k}, {TN, TK})) : load(b, {k, n}, {TK, TN}); // (TK, TN)
  Tile product = dot(left, right);                                                        // (TM, TN)
  store(c, {0, 0}, cfg.total ? unsqueeze(sum(product), -1) : product);
}
const Kernel hangingKernel = kernel("hanging", hanging, hangingFields);

/// A whole number as an element.
uint64_t rawOf(Type type, int number) { return isFloat(type) ? rawOfReal(type, number) : rawOfInteger(type, number); }

/// A value that must not be added to a sum: NaN, or a number that changes every sum.
uint64_t poisonOf(Type type) { return isFloat(type) ? rawOfReal(type, NAN) : rawOfInteger(type, 101); }

class Products : public Semantics {
protected:
  /// Small integers, whose sums of products are exact, stored by rows or, if `turned`, by columns.
  Tensor matrix(int64_t rows, int64_t columns, bool turned, int (*element)(int64_t, int64_t)) {
    Raw raw;
    for (int64_t i = 0; i < rows * columns; ++i)
      raw.push_back(rawOfReal(f32, turned ? element(i % rows, i / rows) : element(i / columns, i % columns)));
    return tensor(f32, turned ? Shape{columns, rows} : Shape{rows, columns}, raw);
  }

  /// A matrix of any type, as a part of a larger one with poison elsewhere.
  Tensor surrounded(Type type, int64_t rows, int64_t columns, bool turned, int (*element)(int64_t, int64_t)) {
    const int64_t height = turned ? columns : rows, width = turned ? rows : columns;
    Raw raw((height + 2) * (width + 2), poisonOf(type));
    for (int64_t i = 0; i < height; ++i)
      for (int64_t j = 0; j < width; ++j)
        raw[(i + 1) * (width + 2) + j + 1] = rawOf(type, turned ? element(j, i) : element(i, j));
    return tensor(type, {height + 2, width + 2}, raw);
  }
  static TensorRef inside(const Tensor &tensor) {
    return tensor.ref().slice(0, 1, tensor.extents()[0] - 2).slice(1, 1, tensor.extents()[1] - 2);
  }
};

int leftAt(int64_t m, int64_t k) {
  return m < 0 || m >= M || k < 0 || k >= K ? 0 : static_cast<int>((m * 3 + k * 5) % 11) - 5;
}
int rightAt(int64_t k, int64_t n) {
  return k < 0 || k >= K || n < 0 || n >= N ? 0 : static_cast<int>((k * 7 + n * 2) % 13) - 6;
}

struct CastConfig {
  bool ta = false, tb = false;
};

/// c = a · b, a step of 32 terms at a time; both are cast to bf16 before they are multiplied.
void castProducts(View a, View b, View c, CastConfig cfg) {
  Tile sums = zeros(f32, {32, 64});
  for (Tile k : range(0, a.dim(cfg.ta ? 0 : 1), 32)) {
    Tile left = cfg.ta ? transpose(load(a, {k, 0}, {32, 32})) : load(a, {0, k}, {32, 32});  // (32, 32)
    Tile right = cfg.tb ? transpose(load(b, {0, k}, {64, 32})) : load(b, {k, 0}, {32, 64}); // (32, 64)
    sums = dot(cast(left, bf16), cast(right, bf16), sums);                                  // (32, 64)
  }
  store(c, {0, 0}, sums);
}
const Kernel castKernel =
    kernel("cast_products", castProducts, {field("ta", &CastConfig::ta), field("tb", &CastConfig::tb)});

// Operands that are cast after the load may be prefetched in their stored type.
TEST_P(Products, OfCastTilesAreExact) {
  constexpr int64_t rows = 32, columns = 64;
  const auto element = [](int64_t i, int64_t j) { return static_cast<int>((i * 5 + j * 3) % 15) - 7; };
  for (const auto &[leftType, rightType] : {std::pair(i8, bf16), {bf16, i8}, {f32, f16}, {i8, i8}})
    for (const int64_t terms : {0, 32, 80, 160})
      for (int bits = 0; bits < 4; ++bits) {
        const bool ta = bits & 1, tb = bits & 2;
        Raw left, right;
        for (int64_t i = 0; i < rows * terms; ++i)
          left.push_back(rawOf(leftType, ta ? element(i % rows, i / rows) : element(i / terms, i % terms)));
        for (int64_t i = 0; i < terms * columns; ++i)
          right.push_back(rawOf(rightType, tb ? element(i % terms, i / terms) : element(i / columns, i % columns)));
        const Tensor a = tensor(leftType, ta ? Shape{terms, rows} : Shape{rows, terms}, left),
                     b = tensor(rightType, tb ? Shape{columns, terms} : Shape{terms, columns}, right),
                     c = tensor(f32, {rows, columns}, Raw(rows * columns, rawOfReal(f32, 7)));
        launch(castKernel, {a.ref(), b.ref(), c.ref()}, fmt::format("ta={:d},tb={:d}", ta, tb));
        const Raw got = read(c);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < columns; ++j) {
            int want = 0;
            for (int64_t s = 0; s < terms; ++s)
              want += element(i, s) * element(s, j);
            ASSERT_TRUE(same(f32, got[i * columns + j], rawOfReal(f32, want), false))
                << terms << " terms, ta " << ta << ", tb " << tb << ", at " << i << ", " << j << ": expected " << want
                << ", but got " << realOf(f32, got[i * columns + j]);
          }
      }
}

TEST_P(Products, OfTilesThatHangOverTheirViewsAreZeroOutside) {
  const int64_t corners[][3] = {{0, 0, 0},  {3, 7, 2},  {-3, 0, 0}, {0, -5, 0},
                                {0, 0, -2}, {0, 60, 0}, {60, 0, 0}, {0, 0, 30}};
  for (int bits = 0; bits < 32; ++bits) {
    const bool ta = bits & 1, tb = bits & 2, known = bits & 4, total = bits & 8, fixed = bits & 16;
    const std::string config =
        fmt::format("ta={:d},tb={:d},known={:d},total={:d},fixed={:d}", ta, tb, known, total, fixed);
    const Tensor a = matrix(M, K, ta, leftAt), b = matrix(K, N, tb, rightAt);
    for (const auto &[m, n, k] : corners) {
      if (fixed && (m != 3 || n != 7 || k != 2))
        continue;
      const Tensor c = tensor(f32, {TM, TN}, Raw(TM * TN, rawOfReal(f32, 7)));
      launch(hangingKernel, {a.ref(), b.ref(), c.ref(), m, n, k}, config);
      const Raw got = read(c);
      for (int64_t i = 0; i < TM; ++i) {
        int sum = 0;
        for (int64_t j = 0; j < TN; ++j) {
          int want = 0;
          for (int64_t s = 0; s < TK; ++s)
            want += leftAt(m + i, k + s) * rightAt(k + s, n + j);
          sum += want;
          if (!total) {
            ASSERT_TRUE(same(f32, got[i * TN + j], rawOfReal(f32, want), false))
                << config << " from " << m << ", " << n << ", " << k << ", at " << i << ", " << j << ": expected "
                << want << ", but got " << realOf(f32, got[i * TN + j]);
          }
        }
        if (total) {
          ASSERT_TRUE(same(f32, got[i * TN], rawOfReal(f32, sum), false))
              << config << " from " << m << ", " << n << ", " << k << ", row " << i << ": expected " << sum
              << ", but got " << realOf(f32, got[i * TN]);
        }
      }
    }
  }
}

// Types of which some CPUs multiply several neighbours along k at a time.
TEST_P(Products, OfNarrowTypesMeetNothingBesideTheirViews) {
  const int64_t corners[][3] = {{0, 0, 0}, {3, 7, 2}, {-3, -5, 0}, {0, 0, -3}, {60, 0, 0}, {0, 0, 20}};
  for (const Type type : {bf16, f16, i8})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const Type sums = type == i8 ? i32 : f32;
        const Tensor a = surrounded(type, M, K, ta, leftAt), b = surrounded(type, K, N, tb, rightAt);
        for (const auto &[m, n, k] : corners) {
          const Tensor c = tensor(sums, {TM, TN}, Raw(TM * TN, poisonOf(sums)));
          launch(hangingKernel, {inside(a), inside(b), c.ref(), m, n, k}, fmt::format("ta={:d},tb={:d}", ta, tb));
          const Raw got = read(c);
          for (int64_t i = 0; i < TM * TN; ++i) {
            int want = 0;
            for (int64_t s = 0; s < TK; ++s)
              want += leftAt(m + i / TN, k + s) * rightAt(k + s, n + i % TN);
            ASSERT_TRUE(isFloat(sums) ? same(sums, got[i], rawOf(sums, want), false) : got[i] == rawOf(sums, want))
                << nameOf(type) << ", ta=" << ta << ", tb=" << tb << ", from " << m << ", " << n << ", " << k << ", at "
                << i / TN << ", " << i % TN << ": expected " << want << ", but got word " << got[i];
          }
        }
      }
}

struct PastConfig {
  bool ta = false, tb = false; // as above
  int axis = 0;                // 0: along m, 1: along n, 2: along k
};
const std::vector<Field> pastFields = {field("ta", &PastConfig::ta), field("tb", &PastConfig::tb),
                                       field("axis", &PastConfig::axis)};

/// c = a · b from a position along one axis so far past the views that there is no memory at all.
void past(View a, View b, View c, PastConfig cfg) {
  hanging(a, b, c, full(i64, {}, cfg.axis == 0 ? int64_t(1) << 61 : 0),
          full(i64, {}, cfg.axis == 1 ? int64_t(1) << 61 : 0), full(i64, {}, cfg.axis == 2 ? int64_t(1) << 61 : 0),
          {.ta = cfg.ta, .tb = cfg.tb});
}
const Kernel pastKernel = kernel("past", past, pastFields);

TEST_P(Products, OfTilesThatBeginPastTheirViewsReadNothing) {
  for (const Type type : {f32, bf16, i8})
    for (int bits = 0; bits < 4; ++bits)
      for (int axis = 0; axis < 3; ++axis) {
        const bool ta = bits & 1, tb = bits & 2;
        const Type sums = type == i8 ? i32 : f32;
        const Tensor a = surrounded(type, M, K, ta, leftAt), b = surrounded(type, K, N, tb, rightAt);
        const Tensor c = tensor(sums, {TM, TN}, Raw(TM * TN, poisonOf(sums)));
        const std::string config = fmt::format("ta={:d},tb={:d},axis={}", ta, tb, axis);
        launch(pastKernel, {inside(a), inside(b), c.ref()}, config);
        for (const uint64_t got : read(c))
          ASSERT_EQ(got, 0) << nameOf(type) << ", " << config;
      }
}

struct DepthConfig {
  int rows = 1, depth = 1;
};
const std::vector<Field> depthFields = {field("rows", &DepthConfig::rows), field("depth", &DepthConfig::depth)};

/// c = c + a · b, of tiles that are as large as their views.
void whole(View a, View b, View c, DepthConfig cfg) {
  Tile left = load(a, {0, 0}, {cfg.rows, cfg.depth}),
       right = load(b, {0, 0}, {cfg.depth, 33}); // (rows, depth), (depth, 33)
  store(c, {0, 0}, dot(left, right, load(c, {0, 0}, {cfg.rows, 33})));
}
const Kernel wholeKernel = kernel("whole", whole, depthFields);

// Every depth, a single row, and the numbers at both ends.
TEST_P(Products, OfIntegersAreExact) {
  for (const int rows : {1, 9})
    for (const int depth : {1, 2, 4, 6, 20, 64}) {
      Raw left = words(i8, rows * depth, 1, 5), right = words(i8, depth * 33, 3, 6),
          before = words(i32, rows * 33, 1, 7);
      left[0] = right[0] = rawOfInteger(i8, -128);
      const Tensor a = tensor(i8, {rows, depth}, left), b = tensor(i8, {depth, 33}, right);
      const Tensor c = tensor(i32, {rows, 33}, before);
      launch(wholeKernel, {a.ref(), b.ref(), c.ref()}, fmt::format("rows={},depth={}", rows, depth));
      const Raw got = read(c);
      for (int64_t i = 0; i < rows * 33; ++i) {
        int64_t want = integerOf(i32, before[i]);
        for (int64_t k = 0; k < depth; ++k)
          want += integerOf(i8, left[i / 33 * depth + k]) * integerOf(i8, right[k * 33 + i % 33]);
        ASSERT_EQ(got[i], rawOfInteger(i32, want)) << rows << " rows, depth " << depth << ", element " << i;
      }
    }
}

/// rows × columns ones, but `special` in rows or, `across`, columns from `from` on, before `to`.
Raw onesBut(Type type, int64_t rows, int64_t columns, bool across, int64_t from, int64_t to, double special) {
  Raw raw;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int64_t k = across ? i % columns : i / columns;
    raw.push_back(rawOfReal(type, from <= k && k < to ? special : 1));
  }
  return raw;
}

// A term with an operand outside of its view may be omitted, on either side, or be infinity times zero; no other may.
TEST_P(Products, LeaveOutTermsWithAFactorOutsideAlone) {
  for (const Type type : {f32, bf16, f16, f64})
    for (const int64_t rows : {1, 16})
      for (const int64_t depth : {20, 64}) {
        const Type sums = type == f64 ? f64 : f32;
        const int64_t inside = depth - 7;
        const auto product = [&](const Tensor &a, const Tensor &b) {
          const Tensor c = tensor(sums, {rows, 33}, Raw(rows * 33, 0));
          launch(wholeKernel, {a.ref(), b.ref(), c.ref()}, fmt::format("rows={},depth={}", rows, depth));
          return read(c);
        };
        const Raw infinite = onesBut(type, rows, depth, true, inside, depth, INFINITY),
                  below = onesBut(type, depth, 33, false, inside, depth, INFINITY);
        const Tensor ones = tensor(type, {rows, inside}, Raw(rows * inside, rawOfReal(type, 1))),
                     short33 = tensor(type, {inside, 33}, Raw(inside * 33, rawOfReal(type, 1)));
        for (const Raw &got :
             {product(tensor(type, {rows, depth}, infinite), short33), product(ones, tensor(type, {depth, 33}, below))})
          for (const uint64_t word : got) {
            const double sum = realOf(sums, word);
            ASSERT_TRUE(std::isnan(sum) || sum == static_cast<double>(inside)) << nameOf(type) << ": " << sum;
          }
        const Tensor left = tensor(type, {rows, depth}, onesBut(type, rows, depth, true, 2, 3, INFINITY)),
                     right = tensor(type, {depth, 33}, onesBut(type, depth, 33, false, 2, 3, 0));
        for (const uint64_t word : product(left, right))
          ASSERT_TRUE(std::isnan(realOf(sums, word))) << nameOf(type);
      }
}

/// The tiles of a test of several products, by number: leading extents, M, N and K.
struct Pairs {
  std::vector<int64_t> leading;
  int64_t m, n, k;
};
const std::vector<Pairs> everyPairs = {{{3}, 24, 40, 20},     {{4}, 32, 64, 32},       {{1}, 16, 32, 64},
                                       {{2, 3}, 5, 33, 7},    {{2, 1, 2}, 16, 16, 32}, {{5}, 1, 32, 16},
                                       {{6}, 16, 1, 8},       {{7}, 1, 1, 1},          {{8}, 32, 32, 32},
                                       {{1, 1, 1}, 9, 17, 3}, {{2, 2, 2}, 8, 8, 12}};

struct PairsOfConfig {
  int number = 0;              // of `everyPairs`
  bool ta = false, tb = false; // the last two dimensions of a, or b, change places
  bool moved = false;          // the last leading dimension stands behind M, or K, in memory
  bool loop = false;           // the sum over K is taken in two rounds of a loop
  bool same = false;           // in each round the same terms of b
  bool by = false;             // the result is stored times two, plus one
};

/// Dimensions `a` and `b` of a shape or an order, exchanged.
template <class List> List exchanged(List list, size_t a, size_t b) { return std::swap(list[a], list[b]), list; }

/// An operand of that shape, loaded from `at` along its `axis`.
Tile factorOf(View view, Shape shape, bool turned, bool moved, size_t axis, Tile at) {
  const size_t rank = shape.size();
  std::vector<int> order(rank);
  for (size_t i = 0; i < rank; ++i)
    order[i] = static_cast<int>(i);
  if (moved)
    order = exchanged(order, rank - 3, rank - 2);
  if (turned)
    order = exchanged(order, rank - 2, rank - 1);
  Shape stored(rank);
  Offsets offsets(rank, At(0));
  for (size_t i = 0; i < rank; ++i)
    stored[order[i]] = shape[i];
  offsets[order[axis]] = At(at);
  return transpose(load(view, offsets, stored), order);
}

/// c = c + a · b of each pair of matrices.
void pairs(View a, View b, View c, PairsOfConfig cfg) {
  const Pairs &of = everyPairs[cfg.number];
  const size_t rank = of.leading.size() + 2;
  Shape left(of.leading), right(of.leading), sums(of.leading);
  left.insert(left.end(), {of.m, of.k});
  right.insert(right.end(), {of.k, of.n});
  sums.insert(sums.end(), {of.m, of.n});
  const Offsets zero(rank, At(0));
  Tile acc = load(c, zero, sums);                                        // (…, M, N)
  const Tile first = factorOf(b, right, cfg.tb, cfg.moved, rank - 2, 0); // (…, K, N)
  const auto add = [&](Tile k) {
    const Tile next = cfg.same ? first : factorOf(b, right, cfg.tb, cfg.moved, rank - 2, k);
    acc = dot(factorOf(a, left, cfg.ta, cfg.moved, rank - 1, k), next, acc);
  };
  if (cfg.loop)
    for (Tile k : range(0, 2 * of.k, of.k))
      add(k);
  else
    add(0);
  store(c, zero, cfg.by ? acc * 2 + 1 : acc);
}
const Kernel pairsKernel =
    kernel("pairs", pairs,
           {field("number", &PairsOfConfig::number), field("ta", &PairsOfConfig::ta), field("tb", &PairsOfConfig::tb),
            field("moved", &PairsOfConfig::moved), field("loop", &PairsOfConfig::loop),
            field("same", &PairsOfConfig::same), field("by", &PairsOfConfig::by)});

// Every rank and type, a single matrix, row and column, odd extents, matrices that are transposed or strided in memory.
TEST_P(Products, OfSeveralMatricesAreThoseOfEachPair) {
  const auto element = [](int64_t i) { return static_cast<int>(i * 7 % 15) - 7; };
  const auto *gpu = std::get_if<GpuFacts>(&device->target().facts);
  const bool isSmall = gpu && gpu->ctaSharedBytes < 100 << 10; // sm_86, sm_89 and sm_120
  for (int number = 0; number < static_cast<int>(everyPairs.size()); ++number)
    for (const Type type : {f32, bf16, f16, i8, f64, f8e4m3}) {
      if (isSmall && type == f64 && everyPairs[number].k * everyPairs[number].m >= 1024)
        continue; // its tiles take a few bytes more
      const bool all = type == f32 || type == bf16;
      if (!all && (number + static_cast<int>(type)) % 2)
        continue; // every second one of the other types
      for (int turn = 0; turn < (all ? 2 : 1); ++turn) {
        const int bits = (11 * turn + 5 * number) % 32; // others for other extents
        const bool ta = bits & 1, tb = bits & 2, moved = bits & 4, loop = bits & 8, by = bits & 16,
                   kept = loop && turn != 1;
        const Pairs &of = everyPairs[number];
        const Type sums = type == i8 ? i32 : type == f64 ? f64 : f32;
        const size_t rank = of.leading.size() + 2;
        int64_t count = 1;
        for (const int64_t extent : of.leading)
          count *= extent;
        const int64_t K = of.k * (loop ? 2 : 1);
        // Elements as numbered in their matrices, in the order in which they are stored.
        const auto factor = [&](int64_t rows, int64_t columns, bool turned, int shift) {
          Shape shape(of.leading);
          shape.insert(shape.end(), {rows, columns});
          std::vector<size_t> order(rank);
          for (size_t i = 0; i < rank; ++i)
            order[i] = i;
          if (moved)
            order = exchanged(order, rank - 3, rank - 2);
          if (turned)
            order = exchanged(order, rank - 2, rank - 1);
          Shape stored(rank), strides(rank, 1);
          for (size_t i = 0; i < rank; ++i)
            stored[order[i]] = shape[i];
          for (size_t i = rank - 1; i-- > 0;)
            strides[i] = strides[i + 1] * stored[i + 1];
          Raw raw(count * rows * columns);
          for (int64_t i = 0; i < static_cast<int64_t>(raw.size()); ++i) {
            int64_t place = 0, rest = i;
            for (size_t axis = rank; axis-- > 0; rest /= shape[axis])
              place += rest % shape[axis] * strides[order[axis]];
            raw[place] = rawOf(type, element(i + shift));
          }
          return tensor(type, stored, raw);
        };
        const Tensor a = factor(of.m, K, ta, 0), b = factor(K, of.n, tb, 3);
        Shape shape(of.leading);
        shape.insert(shape.end(), {of.m, of.n});
        Raw before;
        for (int64_t i = 0; i < count * of.m * of.n; ++i)
          before.push_back(rawOf(sums, element(i)));
        const Tensor c = tensor(sums, shape, before);
        const std::string config = fmt::format("number={},ta={:d},tb={:d},moved={:d},loop={:d},by={:d},same={:d}",
                                               number, ta, tb, moved, loop, by, kept);
        launch(pairsKernel, {a.ref(), b.ref(), c.ref()}, config);
        const Raw got = read(c);
        for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
          const int64_t pair = i / (of.m * of.n), row = i / of.n % of.m, column = i % of.n;
          int want = element(i);
          for (int64_t s = 0; s < K; ++s)
            want +=
                element((pair * of.m + row) * K + s) * element((pair * K + (kept ? s % of.k : s)) * of.n + column + 3);
          want = by ? 2 * want + 1 : want;
          ASSERT_TRUE(isFloat(sums) ? same(sums, got[i], rawOf(sums, want), false) : got[i] == rawOf(sums, want))
              << nameOf(type) << ", " << config << ", at " << i << ": expected " << want << ", but got word " << got[i];
        }
      }
    }
}

KILN_ON_PROCESSORS(Products);

} // namespace
