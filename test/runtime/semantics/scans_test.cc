// Several scans and reductions in one program: of one tile, by functions of several tiles, in loops, in place and as
// masks. folds_test draws each kind and function separately.

#include "test/runtime/semantics/semantics.h"

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

// --- Several scans of one tile ---------------------------------------------------------------------------------------

enum Function { sums, products, greatest, firsts, recurrence, rolled, functionCount };
using Pair = std::array<Tile, 2>;

/// Row f · rows … of `out` is function f of x; the recurrence is of y, with x's signs as multipliers.
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
  // The previous element, for the first the element itself: the count, the one before the last, the last.
  using Three = std::array<Tile, 3>;
  const auto roll = [](Three p, Three q) { return Three{p[0] + q[0], where(q[0] == 1, p[2], q[1]), q[2]}; };
  put(rolled, scan({a * 0 + 1, a, a}, cfg.axis, roll, cfg.reverse)[1]);
}
const Kernel scanAllKernel = kernel("scan_all", scanAll, planeFields());

TEST_P(Scans, SixFunctionsOfOneTile) {
  const std::pair<int, int> shapes[] = {{8, 32}, {16, 32}, {32, 16}, {2, 1024}, {1024, 2}, {32, 32}};
  std::mt19937 random(11);
  int cases = 0;
  for (const auto &[rows, columns] : shapes) {
    const int axis = cases % 2;
    const bool reverse = cases / 2 % 2;
    const PlaneConfig cfg{rows, columns, axis, reverse, cases++ % 3 ? 4 : 8};
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
    launch(scanAllKernel, {x.ref(), y.ref(), out.ref()}, cfg);
    const Raw got = read(out);
    for (int64_t i = 0; i < functionCount * count; ++i)
      ASSERT_EQ(static_cast<int32_t>(got[i]), want[i])
          << textOf(planeFields(), cfg) << ", function " << i / count << ", element " << i % count;
  }
}

// --- Reductions by functions -----------------------------------------------------------------------------------------

using Moments = std::array<Tile, 3>; // mean, sum of squares of distances from it, number

Moments welford(Moments p, Moments q) {
  const Tile count = p[2] + q[2], distance = q[0] - p[0], share = q[2] / count;
  return {p[0] + distance * share, p[1] + q[1] + distance * distance * p[2] * share, count};
}

/// Mean and sum of squares of rows and columns, and the position of each row's largest element below `limit` in size.
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
    launch(momentsKernel, {x.ref(), r.ref(), c.ref(), p.ref(), limit}, PlaneConfig{rows, columns});
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

/// In place, along rows, from a view that the tile extends past; and uses of the results after a loop.
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

/// The result of a scan is the mask of two stores, and the value of one of them.
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
        // Seven of the columns are in the views, so each lane is tested separately.
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
        launch(maskByScanKernel, {x.ref(), view, truths}, cfg);
        const Raw got = read(out), seen = read(reached);
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(static_cast<int32_t>(got[i]), sums[i])
              << textOf(planeFields(), cfg) << ", " << strides[1] << ", " << i;
          ASSERT_EQ(static_cast<int64_t>(seen[i]), flags[i])
              << textOf(planeFields(), cfg) << ", " << strides[1] << ", " << i;
        }
      }
}

KILN_ON_PROCESSORS(Scans);

} // namespace
