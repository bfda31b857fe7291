// Scans and reductions by functions: along every axis, forwards and backwards, by kinds and by functions of several
// tiles, beside a left fold in plain C++.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class Scans : public Semantics {};

/// Calls `line` with the positions of each line along an axis, in the order of the scan.
void forLines(const Shape &shape, int axis, bool reverse,
              const std::function<void(const std::vector<int64_t> &)> &line) {
  int64_t inner = 1, outer = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    (static_cast<int>(dim) < axis ? outer : inner) *= static_cast<int>(dim) == axis ? 1 : shape[dim];
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      std::vector<int64_t> at;
      for (int64_t n = 0; n < shape[axis]; ++n)
        at.push_back((o * shape[axis] + (reverse ? shape[axis] - 1 - n : n)) * inner + i);
      line(at);
    }
}

struct PlaneConfig {
  int rows = 1, columns = 1, axis = 0;
  bool reverse = false;
  int warps = 4;
};
std::vector<Field> planeFields() {
  return {field("rows", &PlaneConfig::rows), field("columns", &PlaneConfig::columns), field("axis", &PlaneConfig::axis),
          field("reverse", &PlaneConfig::reverse), field("warps", &PlaneConfig::warps)};
}
std::string planeText(const PlaneConfig &cfg) {
  return "rows=" + std::to_string(cfg.rows) + ",columns=" + std::to_string(cfg.columns) +
         ",axis=" + std::to_string(cfg.axis) + ",reverse=" + std::to_string(cfg.reverse) +
         ",warps=" + std::to_string(cfg.warps);
}

// --- The shapes and functions of Triton's test_scan2d
// -----------------------------------------------------------------

enum Function { sums, products, greatest, firsts, recurrence, rolled, functionCount };
using Pair = std::array<Tile, 2>;

/// Row f · rows … of `out` is function f of x; the recurrence is of y, with x's signs as factors.
void scanAll(View x, View y, View out, PlaneConfig cfg) {
  const Shape shape{cfg.rows, cfg.columns};
  const Tile a = load(x, {0, 0}, shape), b = load(y, {0, 0}, shape);
  const Tile sign = where(a > 0, 1, -1);
  const auto put = [&](Function f, const Tile &tile) { store(out, {f * cfg.rows, 0}, tile); };
  put(sums, cumsum(a, cfg.axis, cfg.reverse));
  put(products, cumprod(a, cfg.axis, cfg.reverse));
  put(greatest, cummax(a, cfg.axis, cfg.reverse));
  put(firsts, scan(a, cfg.axis, [](Tile first, Tile) { return first; }, cfg.reverse));
  const auto recur = [](Pair p, Pair q) { return Pair{p[0] * q[0], p[1] * q[0] + q[1]}; };
  put(recurrence, scan({sign, b}, cfg.axis, recur, cfg.reverse)[1]);
  // The element before each, of the first the element itself: how many there are, what is before the last, the last.
  using Three = std::array<Tile, 3>;
  const auto roll = [](Three p, Three q) { return Three{p[0] + q[0], where(q[0] == 1, p[2], q[1]), q[2]}; };
  put(rolled, scan({a * 0 + 1, a, a}, cfg.axis, roll, cfg.reverse)[1]);
}
const Kernel scanAllKernel = kernel("scan_all", scanAll, planeFields());

TEST_P(Scans, SixFunctionsOfFourteenShapes) {
  const std::pair<int, int> shapes[] = {{8, 32}, {16, 32}, {32, 16}, {2, 1024}, {1024, 2}, {32, 32}, {1, 1024}};
  std::mt19937 random(11);
  int cases = 0;
  for (const auto &[rows, columns] : shapes)
    for (const int axis : {0, 1})
      for (const bool reverse : {false, true}) {
        const PlaneConfig cfg{rows, columns, axis, reverse, cases++ % 2 ? 4 : 8};
        const int64_t count = rows * columns;
        std::vector<int32_t> a(count), b(count), want(functionCount * count);
        Raw words, others;
        for (int64_t i = 0; i < count; ++i) {
          a[i] = static_cast<int32_t>(random() % 7) - 3;
          b[i] = static_cast<int32_t>(random() % 100);
          words.push_back(rawOfInteger(i32, a[i]));
          others.push_back(rawOfInteger(i32, b[i]));
        }
        forLines({rows, columns}, axis, reverse, [&](const std::vector<int64_t> &line) {
          uint32_t sum = 0, product = 1, h = 0; // which wrap
          int32_t most = INT32_MIN;
          for (size_t n = 0; n < line.size(); ++n) {
            const int64_t at = line[n];
            const auto now = static_cast<uint32_t>(a[at]);
            want[sums * count + at] = static_cast<int32_t>(sum += now);
            want[products * count + at] = static_cast<int32_t>(product *= now);
            want[greatest * count + at] = most = std::max(most, a[at]);
            want[firsts * count + at] = a[line[0]];
            h = n == 0 ? static_cast<uint32_t>(b[at]) : (a[at] > 0 ? h : 0 - h) + static_cast<uint32_t>(b[at]);
            want[recurrence * count + at] = static_cast<int32_t>(h);
            want[rolled * count + at] = a[line[n ? n - 1 : 0]];
          }
        });
        const Tensor x = tensor(i32, {rows, columns}, words), y = tensor(i32, {rows, columns}, others),
                     out(device, i32, {functionCount * rows, columns});
        launch(scanAllKernel, {x.ref(), y.ref(), out.ref()}, planeText(cfg));
        const Raw got = read(out);
        for (int64_t i = 0; i < functionCount * count; ++i)
          ASSERT_EQ(static_cast<int32_t>(got[i]), want[i])
              << planeText(cfg) << ", function " << i / count << ", element " << i % count;
      }
}

// --- Kinds
// ------------------------------------------------------------------------------------------------------------

struct LineConfig {
  int before = 1, extent = 1, behind = 1;
  bool reverse = false;
  int warps = 4;
};

/// Of a tile of three dimensions along the middle one: all kinds, added to by what the nest computes besides.
void scanKinds(View x, View out, LineConfig cfg) {
  const Shape shape{cfg.before, cfg.extent, cfg.behind};
  const Tile a = load(x, {0, 0, 0}, shape);
  int row = 0;
  for (const Tile &tile :
       {cumsum(a, 1, cfg.reverse), cumprod(a, 1, cfg.reverse), cummax(a, -2, cfg.reverse), cummin(a, 1, cfg.reverse)})
    store(out, {row++ * cfg.before, 0, 0}, cast(tile, out.type()) + cast(a, out.type()));
}
const Kernel scanKindsKernel = kernel("scan_kinds", scanKinds,
                                      {field("before", &LineConfig::before), field("extent", &LineConfig::extent),
                                       field("behind", &LineConfig::behind), field("reverse", &LineConfig::reverse),
                                       field("warps", &LineConfig::warps)});

TEST_P(Scans, KindsOfEveryTypeAndExtent) {
  const int shapes[][3] = {{1, 1, 1},    {1, 2, 1}, {1, 3, 1},  {1, 17, 1},  {1, 31, 1},  {1, 70, 1}, {1, 768, 1},
                           {5, 1000, 1}, {3, 5, 7}, {2, 33, 3}, {1, 65, 16}, {4, 100, 1}, {1, 3, 40}};
  const Type types[] = {f32, i8, bf16, f64, i64, f16, boolean, i32};
  int cases = 0;
  for (const auto &[before, extent, behind] : shapes)
    for (const bool reverse : {false, true}) {
      const Type type = types[cases % 8];
      const int64_t count = int64_t{1} * before * extent * behind;
      std::vector<double> a(count), want(4 * count);
      Raw words;
      for (int64_t i = 0; i < count; ++i) { // sums and products that every step has exactly
        const int64_t n = i * 7 % 11;
        a[i] = type == boolean ? static_cast<double>(n % 2) : n == 10 ? -1 : n == 5 ? 0 : n % 2;
        words.push_back(isFloat(type) ? rawOfReal(type, a[i]) : rawOfInteger(type, static_cast<int64_t>(a[i])));
      }
      forLines({before, extent, behind}, 1, reverse, [&](const std::vector<int64_t> &line) {
        double sum = 0, product = 1, most = -INFINITY, least = INFINITY;
        for (const int64_t at : line) {
          const double all[] = {sum += a[at], product *= a[at], most = std::max(most, a[at]),
                                least = std::min(least, a[at])};
          for (int kind = 0; kind < 4; ++kind) // each is rounded once
            want[kind * count + at] = a[at] + (isFloat(type) ? realOf(type, rawOfReal(type, all[kind])) : all[kind]);
        }
      });
      const Tensor x = tensor(type, {before, extent, behind}, words), out(device, f64, {4 * before, extent, behind});
      launch(scanKindsKernel, {x.ref(), out.ref()},
             "before=" + std::to_string(before) + ",extent=" + std::to_string(extent) +
                 ",behind=" + std::to_string(behind) + ",reverse=" + std::to_string(reverse) +
                 ",warps=" + std::to_string(1 << cases++ % 4));
      const Raw got = read(out);
      for (int64_t i = 0; i < 4 * count; ++i)
        ASSERT_EQ(realOf(f64, got[i]), want[i])
            << nameOf(type) << " " << before << "x" << extent << "x" << behind << ", reverse " << reverse << ", kind "
            << i / count << ", element " << i % count;
    }
}

void bitwise(View x, View b, View out, View truths) {
  const Tile a = load(x, {0}, {100}), t = load(b, {0}, {100});
  int row = 0;
  for (const bool reverse : {false, true})
    for (const Tile &tile : {cumand(a, 0, reverse), cumor(a, 0, reverse), cumxor(a, 0, reverse)})
      store(out, {row++, 0}, tile);
  row = 0;
  for (const Tile &tile : {cumand(t), cumor(t), cumxor(t)})
    store(truths, {row++, 0}, tile);
}
const Kernel bitwiseKernel = kernel("scan_bits", bitwise);

TEST_P(Scans, BitwiseOnIntegersAndBooleans) {
  std::mt19937 random(3);
  Raw words, truths, want(600), wantTruths(300);
  for (int i = 0; i < 100; ++i) {
    words.push_back(random() | (i < 40 ? 0x1000u : 0) | 1);
    truths.push_back(i < 30 || random() % 2);
  }
  for (const bool reverse : {false, true}) {
    uint32_t all = ~0u, any = 0, odd = 0;
    uint64_t every = 1, some = 0, parity = 0;
    for (int n = 0; n < 100; ++n) {
      const int at = reverse ? 99 - n : n;
      want[300 * reverse + at] = all &= static_cast<uint32_t>(words[at]);
      want[300 * reverse + 100 + at] = any |= static_cast<uint32_t>(words[at]);
      want[300 * reverse + 200 + at] = odd ^= static_cast<uint32_t>(words[at]);
      if (!reverse) {
        wantTruths[at] = every &= truths[at];
        wantTruths[100 + at] = some |= truths[at];
        wantTruths[200 + at] = parity ^= truths[at];
      }
    }
  }
  const Tensor x = tensor(i32, {100}, words), b = tensor(boolean, {100}, truths), out(device, i32, {6, 100}),
               t(device, boolean, {3, 100});
  launch(bitwiseKernel, {x.ref(), b.ref(), out.ref(), t.ref()});
  EXPECT_EQ(read(out), want);
  EXPECT_EQ(read(t), wantTruths);
}

// --- Floats
// -----------------------------------------------------------------------------------------------------------

void scanFloats(View x, View out) {
  const Tile a = load(x, {0}, {1000});
  store(out, {0, 0}, cumsum(a));
  store(out, {1, 0}, cummax(a));
  store(out, {2, 0}, cummin(a, 0, Nans::propagate));
  store(out, {3, 0}, cummax(a, 0, Nans::propagate, true));
}
const Kernel scanFloatsKernel = kernel("scan_floats", scanFloats);

// Element k of a sum is off by at most k · ε · Σ|x|, ε half a unit in the last place; narrow types round once more.
TEST_P(Scans, SumsOfFloatsAreWithinTheirBound) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (const Type type : floatTypes) {
    Raw words;
    for (int i = 0; i < 1000; ++i)
      words.push_back(rawOfReal(type, normal(random)));
    const Tensor x = tensor(type, {1000}, words), out(device, type, {4, 1000});
    launch(scanFloatsKernel, {x.ref(), out.ref()});
    const Raw got = read(out);
    const double epsilon = type == f64 ? 0x1p-53 : 0x1p-24, last = type == bf16 ? 0x1p-8 : type == f16 ? 0x1p-11 : 0;
    double sum = 0, sizes = 0;
    for (int i = 0; i < 1000; ++i) {
      const double value = realOf(type, words[i]);
      sum += value;
      sizes += std::abs(value);
      ASSERT_NEAR(realOf(type, got[i]), sum, (i + 1) * epsilon * sizes + last * std::abs(sum) + 0x1p-24 * last)
          << nameOf(type) << ", element " << i;
    }
  }
}

// Extremes pass over NaN, or give it from the first on; a sum is NaN from there on; −0 alone stays −0.
TEST_P(Scans, NaNAndZeros) {
  for (const Type type : floatTypes) {
    Raw words(1000);
    const auto value = [](int i) {
      return i == 0 || i == 700 ? NAN : i < 20 ? -0.0 : static_cast<double>(i % 50) - 20;
    };
    for (int i = 0; i < 1000; ++i)
      words[i] = rawOfReal(type, value(i));
    const Tensor x = tensor(type, {1000}, words), out(device, type, {4, 1000});
    launch(scanFloatsKernel, {x.ref(), out.ref()});
    const Raw got = read(out);
    double most = NAN, last = NAN;
    for (int i = 0; i < 1000; ++i) {
      most = std::fmax(most, value(i));
      last = std::fmax(last, value(999 - i));
      EXPECT_TRUE(std::isnan(realOf(type, got[i])));
      EXPECT_TRUE(same(type, got[1000 + i], rawOfReal(type, most), false)) << nameOf(type) << " " << i;
      EXPECT_TRUE(std::isnan(realOf(type, got[2000 + i])));
      const double want = 999 - i <= 700 ? NAN : last;
      EXPECT_TRUE(same(type, got[3000 + 999 - i], rawOfReal(type, want), false)) << nameOf(type) << " " << i;
    }
    const Tensor zeros = tensor(type, {1000}, Raw(1000, rawOfReal(type, -0.0)));
    launch(scanFloatsKernel, {zeros.ref(), out.ref()});
    const Raw sums = read(out);
    for (int i = 0; i < 1000; ++i)
      ASSERT_EQ(sums[i], rawOfReal(type, -0.0)) << nameOf(type) << " " << i;
  }
}

// --- Reductions by functions
// ------------------------------------------------------------------------------------------

using Moments = std::array<Tile, 3>; // mean, sum of squares of distances from it, number

Moments welford(Moments p, Moments q) {
  const Tile count = p[2] + q[2], distance = q[0] - p[0], share = q[2] / count;
  return {p[0] + distance * share, p[1] + q[1] + distance * distance * p[2] * share, count};
}

/// Mean and sum of squares of rows and of columns, and where each row's largest element of size below `limit` stands.
void moments(View x, View rows, View columns, View places, Tile limit, PlaneConfig cfg) {
  const Shape shape{cfg.rows, cfg.columns};
  const Tile a = load(x, {0, 0}, shape);
  const auto ofRows = reduce({a, zeros(f32, shape), full(f32, shape, 1)}, 1, welford);
  const auto ofColumns = reduce({a, 0.0, full(f32, shape, 1)}, 0, welford);
  for (int i = 0; i < 3; ++i) {
    store(rows, {i, 0}, ofRows[i]);
    store(columns, {i, 0}, ofColumns[i]);
  }
  const auto larger = [&](Pair p, Pair q) {
    const Tile takes = ((q[0] > p[0]) & (q[0] < limit)) | (p[0] >= limit);
    return Pair{where(takes, q[0], p[0]), where(takes, q[1], p[1])};
  };
  store(places, {0}, reduce({a, iota(cfg.columns)}, -1, larger)[1]);
}
const Kernel momentsKernel = kernel("moments", moments, planeFields());

TEST_P(Scans, ReducesSeveralTilesByAFunction) {
  std::mt19937 random(5);
  for (const auto &[rows, columns] : {std::pair(8, 100), std::pair(3, 1), std::pair(64, 64), std::pair(1, 777)}) {
    const int64_t count = rows * columns;
    std::vector<float> numbers(count);
    for (float &number : numbers)
      number = static_cast<float>(random() % 2001) / 1000 - 1;
    Tensor x(device, f32, {rows, columns});
    x.uploadFloats(numbers);
    const Tensor r(device, f32, {3, rows}), c(device, f32, {3, columns}), p(device, i32, {rows});
    const float limit = 0.5f;
    launch(momentsKernel, {x.ref(), r.ref(), c.ref(), p.ref(), limit}, planeText({rows, columns, 0, false, 4}));
    const std::vector<float> gotRows = r.downloadFloats(), gotColumns = c.downloadFloats();
    const Raw places = read(p);
    for (const int axis : {0, 1})
      forLines({rows, columns}, axis, false, [&](const std::vector<int64_t> &line) {
        double mean = 0, squares = 0;
        for (const int64_t at : line)
          mean += numbers[at] / static_cast<double>(line.size());
        for (const int64_t at : line)
          squares += (numbers[at] - mean) * (numbers[at] - mean);
        const int64_t number = axis ? line[0] / columns : line[0], lines = axis ? rows : columns;
        const auto &got = axis ? gotRows : gotColumns;
        // Numbers up to 1: each of a few roundings a step moves the mean by ε, and the squares by 2 ε more.
        const double bound = 8.0 * static_cast<double>(line.size()) * 0x1p-24;
        ASSERT_NEAR(got[number], mean, bound) << rows << "x" << columns << " axis " << axis;
        ASSERT_NEAR(got[lines + number], squares, 4 * bound * static_cast<double>(line.size()));
        ASSERT_EQ(got[2 * lines + number], static_cast<float>(line.size()));
        if (axis == 0)
          return;
        int64_t best = line[0];
        for (const int64_t at : line)
          if ((numbers[at] > numbers[best] && numbers[at] < limit) || numbers[best] >= limit)
            best = at;
        if (numbers[best] < limit) { // else all are as good
          ASSERT_EQ(numbers[line[0] + static_cast<int64_t>(places[number])], numbers[best]);
        }
      });
  }
}

/// The product, whose function gets bf16 as f32, and whether all are above 0.
void foldNarrow(View x, View out, View truth) {
  const Tile a = load(x, {0}, {33});
  store(out, {0}, reduce(a, 0, [](Tile p, Tile q) { return p * q; }));
  store(truth, {0}, scan(a > 0, 0, [](Tile p, Tile q) { return p & q; }));
}
const Kernel foldNarrowKernel = kernel("fold_narrow", foldNarrow);

TEST_P(Scans, NarrowFloatsAreRoundedOnceAndBooleansAreScanned) {
  Raw words(33, rawOfReal(bf16, 1 + 0x1p-7)), truths(33, 1);
  const Tensor x = tensor(bf16, {33}, words), out(device, bf16, {1}), truth(device, boolean, {33});
  launch(foldNarrowKernel, {x.ref(), out.ref(), truth.ref()});
  EXPECT_EQ(read(out)[0], rawOfReal(bf16, std::pow(1 + 0x1p-7, 33)));
  EXPECT_EQ(read(truth), truths);
}

/// In place, along rows, from a view that the tile hangs over; and what comes of the results behind a loop.
void inPlace(View x, View out) {
  const Tile row = program_id();
  store(x, {row, 0}, cumsum(load(x, {row, 0}, {64}), 0, true));
  Tile total = zeros(i32, {64});
  for (Tile k : range(3))
    total = cumsum(total + cast(k, i32) + 1);
  store(out, {row, 0}, total - flip(total));
}
const Kernel inPlaceKernel = kernel("scan_in_place", inPlace);

TEST_P(Scans, InPlaceAndInLoops) {
  const Tensor x = counting(i32, {5, 50}), out(device, i32, {5, 64});
  launch(inPlaceKernel, {x.ref(), out.ref()}, "", 5);
  const Raw got = read(x), behind = read(out);
  std::vector<int64_t> total(64, 0);
  for (int k = 0; k < 3; ++k)
    for (int64_t i = 0, sum = 0; i < 64; ++i)
      total[i] = sum += total[i] + k + 1;
  for (int row = 0; row < 5; ++row) {
    int64_t sum = 0;
    for (int column = 49; column >= 0; --column)
      ASSERT_EQ(static_cast<int64_t>(got[row * 50 + column]), sum += row * 50 + column) << row << ", " << column;
    for (int column = 0; column < 64; ++column)
      ASSERT_EQ(static_cast<int32_t>(behind[row * 64 + column]), total[column] - total[63 - column]) << column;
  }
}

/// What a scan gives is the mask of two stores, and the value of one of them.
void maskByScan(View x, View out, View flags, PlaneConfig cfg) {
  const Shape shape{cfg.rows, cfg.columns};
  const Tile a = load(x, {0, 0}, shape);
  const Tile reached = cumor(a > 50, cfg.axis, cfg.reverse);
  store(flags, {0, 0}, reached, {.mask = reached});
  store(out, {0, 0}, cumsum(a, cfg.axis, cfg.reverse), {.mask = reached});
}
const Kernel maskByScanKernel = kernel("scan_mask", maskByScan, planeFields());

TEST_P(Scans, MaskStoresToViewsOfAnyStride) {
  std::mt19937 random(23);
  for (const Shape &strides : {Shape{64, 1}, Shape{64, 2}, Shape{64, 3}, Shape{1, 8}, Shape{2, 16}})
    for (const int axis : {0, 1})
      for (const bool reverse : {false, true}) {
        // Seven of the columns lie in the views, so that each lane is asked for by itself.
        const PlaneConfig cfg{4, axis == 0 ? 7 : 9, axis, reverse};
        std::vector<int64_t> a(4 * cfg.columns), sums(4 * 64, -1), flags(4 * 64, 0);
        Raw words;
        for (int64_t &value : a)
          words.push_back(static_cast<uint64_t>(value = static_cast<int64_t>(random() % 60)));
        forLines({4, cfg.columns}, axis, reverse, [&](const std::vector<int64_t> &line) {
          int64_t sum = 0;
          bool reached = false;
          for (const int64_t at : line) {
            sum += a[at];
            reached |= a[at] > 50;
            const int64_t row = at / cfg.columns, column = at % cfg.columns;
            if (reached && column < 7) {
              sums[row * strides[0] + column * strides[1]] = sum;
              flags[row * strides[0] + column * strides[1]] = 1;
            }
          }
        });
        const Tensor x = tensor(i32, {4, cfg.columns}, words);
        const Tensor out = tensor(i32, {4 * 64}, Raw(4 * 64, 0xffffffff));
        const Tensor reached = tensor(boolean, {4 * 64}, Raw(4 * 64, 0));
        TensorRef view = out.ref(), truths = reached.ref();
        view.extents = truths.extents = {4, 7};
        view.strides = truths.strides = strides;
        launch(maskByScanKernel, {x.ref(), view, truths}, planeText(cfg));
        const Raw got = read(out), seen = read(reached);
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(static_cast<int32_t>(got[i]), sums[i]) << planeText(cfg) << ", " << strides[1] << ", " << i;
          ASSERT_EQ(static_cast<int64_t>(seen[i]), flags[i]) << planeText(cfg) << ", " << strides[1] << ", " << i;
        }
      }
}

KILN_ON_PROCESSORS(Scans);

} // namespace
