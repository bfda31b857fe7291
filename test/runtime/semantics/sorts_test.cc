// Sorting: of every type, along every axis, in both directions, beside std::stable_sort; permutations of what orders
// oddly; the largest few.

#include "test/runtime/semantics/semantics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace kiln;
using namespace kiln::test;

namespace {

class Sorts : public Semantics {};

/// Whether an element stands before another one: NaN last either way.
bool isBefore(Type type, uint64_t a, uint64_t b, bool descending) {
  if (!isFloat(type)) {
    const int64_t x = integerOf(type, a), y = integerOf(type, b);
    if (isUnsigned(type))
      return descending ? static_cast<uint64_t>(x) > static_cast<uint64_t>(y)
                        : static_cast<uint64_t>(x) < static_cast<uint64_t>(y);
    return descending ? x > y : x < y;
  }
  const double x = realOf(type, a), y = realOf(type, b);
  return std::isnan(y) ? !std::isnan(x) : descending ? x > y : x < y;
}

/// The positions of a line's elements in order.
std::vector<int64_t> orderOf(Type type, const Raw &line, bool descending) {
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return isBefore(type, line[a], line[b], descending); });
  return order;
}

struct LineConfig {
  int before = 1, extent = 1, behind = 1, count = 0; // count: of topk, 0: all
  bool descending = false;
  int warps = 4;
};

/// Along the middle one of three dimensions, or where nothing is behind it along the last of two: values and positions,
/// and values alone.
void sortLines(View x, View out, View at, LineConfig cfg) {
  const bool isRow = cfg.behind == 1;
  Tile a = load(x, {program_id(0) * cfg.before, 0, 0}, {cfg.before, cfg.extent, cfg.behind});
  a = isRow ? reshape(a, {cfg.before, cfg.extent}) : a;
  const Shape shape{cfg.before, cfg.count ? cfg.count : cfg.extent, cfg.behind};
  const Tile row = program_id(0) * (2 * cfg.before);
  const auto [values, positions] = cfg.count ? topk(a, cfg.count, 1) : sort_at(a, isRow ? -1 : -2, cfg.descending);
  store(out, {row, 0, 0}, reshape(values, shape));
  store(out, {row + cfg.before, 0, 0},
        reshape(cfg.count ? topk(a, cfg.count, 1)[0] : sort(a, 1, cfg.descending), shape));
  store(at, {program_id(0) * cfg.before, 0, 0}, reshape(positions, shape));
}
const Kernel sortLinesKernel =
    kernel("sort_lines", sortLines,
           {field("before", &LineConfig::before), field("extent", &LineConfig::extent),
            field("behind", &LineConfig::behind), field("count", &LineConfig::count),
            field("descending", &LineConfig::descending), field("warps", &LineConfig::warps)});

std::string textOf(const LineConfig &cfg) {
  return "before=" + std::to_string(cfg.before) + ",extent=" + std::to_string(cfg.extent) +
         ",behind=" + std::to_string(cfg.behind) + ",count=" + std::to_string(cfg.count) +
         ",descending=" + std::to_string(cfg.descending) + ",warps=" + std::to_string(cfg.warps);
}

/// What came of the lines, beside the positions that they should have: bits of numbers, but for the sign of zero where
/// no positions are asked for, and that NaN are NaN.
void expectSorted(Type type, const LineConfig &cfg, const Raw &words, const Raw &out, const Raw &at) {
  const int64_t rows = static_cast<int64_t>(words.size()) / (int64_t{1} * cfg.extent * cfg.behind);
  const int64_t count = cfg.count ? cfg.count : cfg.extent, plane = count * cfg.behind;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < cfg.behind; ++column) {
      Raw line;
      for (int64_t n = 0; n < cfg.extent; ++n)
        line.push_back(words[(row * cfg.extent + n) * cfg.behind + column]);
      const std::vector<int64_t> want = orderOf(type, line, cfg.count || cfg.descending);
      const int64_t tile = row / cfg.before * 2 * cfg.before + row % cfg.before;
      for (int64_t n = 0; n < count; ++n) {
        const int64_t place = n * cfg.behind + column;
        const uint64_t element = line[want[n]];
        ASSERT_EQ(static_cast<int64_t>(static_cast<int32_t>(at[row * plane + place])), want[n])
            << nameOf(type) << ", " << textOf(cfg) << ", row " << row << ", element " << n;
        const uint64_t together = out[tile * plane + place], alone = out[(tile + cfg.before) * plane + place];
        ASSERT_TRUE(isFloat(type) ? same(type, together, element) : together == element)
            << nameOf(type) << ", " << textOf(cfg) << ", row " << row << ", element " << n << ": " << together;
        ASSERT_TRUE(isFloat(type) ? same(type, alone, element, /*signOfZero=*/false) : alone == element)
            << nameOf(type) << " alone, " << textOf(cfg) << ", row " << row << ", element " << n << ": " << alone;
      }
    }
}

#define EXPECT_SORTED(type, cfg, programs, words)                                                                      \
  do {                                                                                                                 \
    const int64_t rows = (programs) * (cfg).before, kept = (cfg).count ? (cfg).count : (cfg).extent;                   \
    const Tensor x = tensor(type, {rows, (cfg).extent, (cfg).behind}, words),                                          \
                 out(device, type, {2 * rows, kept, (cfg).behind}), at(device, i32, {rows, kept, (cfg).behind});       \
    launch(sortLinesKernel, {x.ref(), out.ref(), at.ref()}, textOf(cfg), programs);                                    \
    ASSERT_NO_FATAL_FAILURE(expectSorted(type, cfg, words, read(out), read(at)));                                      \
  } while (false)

TEST_P(Sorts, EveryTypeAndExtent) {
  const int shapes[][3] = {{1, 1, 1}, {1, 2, 1},  {1, 3, 1},   {1, 17, 1}, {1, 31, 1}, {1, 64, 1},  {5, 65, 1},
                           {3, 5, 7}, {2, 33, 3}, {1, 65, 16}, {4, 16, 1}, {1, 3, 40}, {1, 512, 1}, {2, 1000, 1}};
  size_t cases = 0;
  for (const auto &[before, extent, behind] : shapes)
    for (const bool descending : {false, true}) {
      const Type type = everyType[cases % std::size(everyType)];
      const LineConfig cfg{before, extent, behind, 0, descending, 1 << cases++ % 4};
      const Raw some = words(type, int64_t{1} * before * extent * behind, 5, static_cast<int>(cases));
      EXPECT_SORTED(type, cfg, 1, some);
    }
}

// Few different numbers, in rows and columns of every type: equal ones keep their order.
TEST_P(Sorts, TiesOfEveryType) {
  int cases = 0;
  for (const Type type : everyType) {
    const bool isRow = cases % 2;
    const LineConfig cfg{isRow ? 3 : 2, isRow ? 100 : 40, isRow ? 1 : 17, 0, cases++ % 4 < 2};
    Raw some;
    for (int64_t i = 0; i < int64_t{1} * cfg.before * cfg.extent * cfg.behind; ++i) {
      const int64_t n = i * i % 11 % 4 - 1;
      some.push_back(isFloat(type) ? rawOfReal(type, n == 0 && i % 3 ? -0.0 : static_cast<double>(n))
                                   : rawOfInteger(type, type == boolean ? n > 0 : n));
    }
    EXPECT_SORTED(type, cfg, 1, some);
  }
}

// NaN, infinities, zeros of both signs and equal numbers in every order that there is, 40 rows a program.
TEST_P(Sorts, EveryPermutationOfSpecials) {
  const double specials[] = {-INFINITY, -0.0, 0.0, 1, 1, INFINITY, NAN};
  for (const Type type : {f32, f64, bf16, f16})
    for (const bool descending : {false, true}) {
      if (descending == (type == f32 || type == bf16))
        continue; // each direction of two of them
      Raw some;
      std::vector<int> order(std::size(specials));
      std::iota(order.begin(), order.end(), 0);
      do {
        for (const int n : order)
          some.push_back(rawOfReal(type, specials[n]));
      } while (std::next_permutation(order.begin(), order.end()));
      const LineConfig cfg{40, static_cast<int>(std::size(specials)), 1, 0, descending};
      EXPECT_SORTED(type, cfg, static_cast<int64_t>(some.size()) / (7 * 40), some);
    }
}

// The largest few, of rows that are long for a few and not, as many as warps, and of columns, as many as lanes, with
// fewer numbers than are wanted.
TEST_P(Sorts, TheLargestFew) {
  const LineConfig configs[] = {{3, 300, 1, 8}, {1, 1000, 1, 1}, {1, 1000, 1, 33}, {2, 20, 5, 20},
                                {1, 300, 3, 2}, {4, 512, 1, 64}, {1, 64, 40, 5}};
  int cases = 0;
  for (const LineConfig &cfg : configs)
    for (int half = 0; half < 2; ++half) {
      static constexpr Type types[] = {f32, i64, f64, bf16, i8, i32, f16};
      const Type type = types[cases++ % std::size(types)];
      std::mt19937 random(cases);
      Raw some;
      for (int64_t i = 0; i < int64_t{1} * cfg.before * cfg.extent * cfg.behind; ++i) {
        const auto n = static_cast<int64_t>(random() % 200) - 100;
        const bool isNaN = half && n % 40; // all but a few
        some.push_back(isFloat(type) ? rawOfReal(type, isNaN ? NAN : static_cast<double>(n)) : rawOfInteger(type, n));
      }
      EXPECT_SORTED(type, cfg, 1, some);
    }
}

KILN_ON_PROCESSORS(Sorts);

} // namespace
