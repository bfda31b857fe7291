// Masks that compare positions with limits: of loads and stores, whose ends tell of all elements, and of rows. Sums of
// positions and limits may wrap. accesses_test has masks that are loaded, product_test those of products.

#include "test/runtime/semantics/drawn.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>

using namespace kiln;
using namespace kiln::test;

namespace {

class Masks : public Semantics {};

enum Bound { below, from, within, equal, turned, falling, valley, unlike, narrow, bounds };

constexpr int64_t farthest = 1000;

struct BoundConfig {
  int rows = 3, columns = 300, bound = 0;
  bool isNear = false; // whether the numbers lie within `farthest`, so that no sum can wrap
};

/// Whether positions of a row, counted from `begin`, are in the bounds; all by numbers that may wrap.
Tile inBounds(Tile begin, Tile low, Tile high, const BoundConfig &cfg) {
  const Tile at = begin + iota(cfg.columns, i64);
  switch (cfg.bound) {
  case below:
    return at < high;
  case from:
    return at >= low;
  case within:
    return (at >= low) & (at < high);
  case equal:
    return at == high;
  case turned:
    return high > iota(cfg.columns, i64) + begin;
  case falling:
    return low <= begin - iota(cfg.columns, i64) * 3;
  case valley:
    return max(at, high - iota(cfg.columns, i64)) >= low;
  case unlike:
    return at != high;
  default:
    return cast(begin, i32) + iota(cfg.columns) < cast(high, i32);
  }
}

/// x, y (rows, columns): y is x where a row's positions are in the bounds, which all rows share, and below it.
void moveInBounds(View x, View y, View sums, Tile begin, Tile low, Tile high, BoundConfig cfg) {
  const Shape shape = {cfg.rows, cfg.columns};
  if (cfg.isNear)
    for (Tile *number : {&begin, &low, &high})
      *number = min(max(*number, -farthest), farthest);
  const Tile mask = unsqueeze(inBounds(begin, low, high, cfg), 0) & (unsqueeze(iota(cfg.rows), -1) < cfg.rows - 1);
  store(y, {0, 0}, load(x, {0, 0}, shape, {.mask = mask}), {.mask = mask});
  store(sums, {0}, sum(cast(load(x, {0, 0}, shape, {.mask = mask}), i32)));
}
const Kernel moveInBoundsKernel = kernel("move_in_bounds", moveInBounds,
                                         {field("rows", &BoundConfig::rows), field("columns", &BoundConfig::columns),
                                          field("bound", &BoundConfig::bound), field("near", &BoundConfig::isNear)});

/// The condition for one position, in C++.
bool isInBounds(int64_t begin, int64_t column, int64_t low, int64_t high, int bound) {
  const int64_t at = wrappedSum(begin, column);
  switch (bound) {
  case below:
  case turned:
    return at < high;
  case from:
    return at >= low;
  case within:
    return at >= low && at < high;
  case equal:
    return at == high;
  case falling:
    return low <= wrappedSum(begin, -3 * column);
  case valley:
    return std::max(at, wrappedSum(high, -column)) >= low;
  case unlike:
    return at != high;
  default:
    return static_cast<int32_t>(wrappedSum(static_cast<int32_t>(begin), column)) < static_cast<int32_t>(high);
  }
}

TEST_P(Masks, OfPositionsHoldAsTheirNumbersSay) {
  constexpr int64_t rows = 3, most = std::numeric_limits<int64_t>::max();
  int kinds = 0;
  constexpr int64_t columns = 300;
  for (int bound = 0; bound < bounds; ++bound)
    for (const bool isNear : {false, true})
      for (const auto &numbers : {std::array<int64_t, 3>{0, 40, 131},
                                  {-200, -100, 0},
                                  {5, 5, columns + 5},
                                  {most - 100, 3, most - 20},
                                  {most - 100, -most, 7},
                                  {(int64_t(1) << 31) - 50, 0, 90},
                                  {0, 84, 160},
                                  {-1, -20, 163}}) {
        const auto near = [&](int64_t number) { return isNear ? std::clamp(number, -farthest, farthest) : number; };
        const int64_t begin = near(numbers[0]), low = near(numbers[1]), high = near(numbers[2]);
        const Type type = std::array{f32, i8, bf16, i64}[kinds++ % 4];
        const int64_t count = rows * columns;
        Raw have(count), want(count, wordOf(type, 99));
        std::vector<int64_t> total(rows, 0);
        for (int64_t i = 0; i < count; ++i) {
          have[i] = wordOf(type, i % 41 + 1);
          if (i / columns < rows - 1 && isInBounds(begin, i % columns, low, high, bound)) {
            want[i] = have[i];
            total[i / columns] += i % 41 + 1;
          }
        }
        const Tensor x = tensor(type, {rows, columns}, have),
                     y = tensor(type, {rows, columns}, Raw(count, wordOf(type, 99)));
        const Tensor sums(device, i32, {rows});
        launch(moveInBoundsKernel, {x.ref(), y.ref(), sums.ref(), numbers[0], numbers[1], numbers[2]},
               BoundConfig{.bound = bound, .isNear = isNear});
        const Raw got = read(y), added = read(sums);
        const std::string where =
            std::string(nameOf(type)) + " bound " + std::to_string(bound) + " from " + std::to_string(begin);
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(got[i], want[i]) << where << " element " << i;
        for (int64_t row = 0; row < rows; ++row)
          ASSERT_EQ(integerOf(i32, added[row]), total[row]) << where << " row " << row;
      }
}

// --- Triangles, of which a target may leave out what is not read
// ------------------------------------------------------

constexpr int64_t M = 44, N = 50;

struct MaskConfig {
  int form = 0;
};

/// Rows of numbers under a mask: stored, summed, and their maximum, with another mask, too.
void rowsUnderMasks(View x, View stored, View sums, View largest, Tile limit, MaskConfig cfg) {
  Tile mask = triangle({M, N}, limit, cfg.form);
  Tile numbers = load(x, {0, 0}, {M, N}); // (M, N)
  Tile kept = where(mask, numbers, -2.0);
  store(stored, {0, 0}, where(mask & (numbers > 0.0), kept + 1.0, numbers));
  store(sums, {0}, sum(where(mask, numbers, 0.5)));
  store(largest, {0}, reduce_max(kept));
}
const Kernel rowsUnderMasksKernel = kernel("rows_under_masks", rowsUnderMasks, {field("form", &MaskConfig::form)});

TEST_P(Masks, OfTrianglesChooseElementsOfRows) {
  const auto number = [](int64_t i) { return static_cast<double>(i * 5 % 7 - 3); };
  Raw words;
  for (int64_t i = 0; i < M * N; ++i)
    words.push_back(rawOfReal(f32, number(i)));
  const Tensor source = tensor(f32, {M, N}, words);
  for (int form = 0; form < triangleForms; ++form)
    for (const int limit : {INT_MIN, -100, -43, -42, -9, -1, 0, 1, 8, 31, 48, 49, 200, INT_MAX}) {
      if (limit == INT_MAX && form != 0 && form != 2 && form != 3) // limit + 1 is no limit any more
        continue;
      const Tensor stored(device, f32, {M, N}), sums(device, f32, {M}), largest(device, f32, {M});
      launch(rowsUnderMasksKernel, {source, stored, sums, largest, limit}, MaskConfig{form});
      const Raw gotStored = read(stored), gotSums = read(sums), gotLargest = read(largest);
      for (int64_t m = 0; m < M; ++m) {
        double sum = 0, most = -INFINITY;
        for (int64_t n = 0; n < N; ++n) {
          const double x = number(m * N + n);
          const bool isInside = isInTriangle({m, n}, limit, form);
          ASSERT_EQ(toDouble(f32, gotStored[m * N + n]), isInside && x > 0 ? x + 1 : x)
              << "form " << form << ", limit " << limit << ", at " << m << ", " << n;
          sum += isInside ? x : 0.5;
          most = std::max(most, isInside ? x : -2);
        }
        ASSERT_EQ(toDouble(f32, gotSums[m]), sum) << "form " << form << ", limit " << limit << ", row " << m;
        ASSERT_EQ(toDouble(f32, gotLargest[m]), most) << "form " << form << ", limit " << limit << ", row " << m;
      }
    }
}

KILN_ON_PROCESSORS(Masks);

} // namespace
