// Masks that compare positions with limits: of loads and stores, whose ends tell of all elements, and of rows. Sums of
// positions and limits may wrap. accesses_test has masks that are loaded, product_test those of products.

#include "test/runtime/semantics/drawn.h"
#include "test/runtime/semantics/semantics.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>

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

// --- Constant offsets across the ends of a view ----------------------------------------------------------------------

// Loads of tiles at constant offsets across both ends of a view, for every type and every offset. The compiler knows
// that some lanes are outside and tests others at run time; neither may be forgotten.

constexpr int64_t reach = 17, offsets = 2 * reach + 1, width = 16; // a native vector of 32 bits at its widest
constexpr int64_t extent = 24;

struct EndConfig {
  bool known = false; // the view's extent is known while compiling
};
const std::vector<Field> endFields = {field("known", &EndConfig::known)};

/// The tile that begins `offset` after the row's beginning, or that much after the last one that is inside.
Tile columnAt(View view, bool atEnd, int64_t offset, EndConfig cfg) {
  if (!atEnd)
    return full(i64, {}, offset);
  const int64_t fits = extent - width + offset;
  return cfg.known ? full(i64, {}, fits) : view.dim(1) - (width - offset);
}

/// Row `row` of x by tiles from each offset, a line of `out` for each.
void loadOverEnds(View x, View out, Tile row, EndConfig cfg) {
  if (cfg.known)
    (void)x.extent(1);
  (void)(out.extent(0) + out.extent(1));
  for (int64_t line = 0; line < 2 * offsets; ++line) {
    const bool atEnd = line >= offsets;
    Tile column = columnAt(x, atEnd, line % offsets - reach, cfg);
    store(out, {line, 0}, load(x, {row, column}, {1, width}));
  }
}
const Kernel loadOverEndsKernel = kernel("load_over_ends", loadOverEnds, endFields);

/// The offset of the line's tile in the view.
int64_t beginOf(int64_t line) {
  const int64_t offset = line % offsets - reach;
  return line < offsets ? offset : extent - width + offset;
}

class Ends : public Semantics {
protected:
  static uint64_t elementAt(Type type, int64_t column) { return wordOf(type, type == boolean ? 1 : column + 2); }
};

// Two rows, the first at the beginning of memory and the last at its end, with ones in between.
TEST_P(Ends, ReadZeroOutsideWhateverIsKnown) {
  for (const Type type : everyType)
    for (const bool known : {false, true}) {
      const int64_t count = 4096 / bytesOf(type);
      Raw raw(count, wordOf(type, 1));
      for (int64_t column = 0; column < extent; ++column)
        raw[column] = raw[count - extent + column] = elementAt(type, column);
      const GuardedPages page(*device, type, raw);
      const TensorRef x{page.data(), type, {2, extent}, {count - extent, 1}};
      for (const int64_t row : {0, 1, -1, 2}) {
        const Tensor out = tensor(type, {2 * offsets, width}, Raw(2 * offsets * width, 1));
        launch(loadOverEndsKernel, {x, out.ref(), row}, fmt::format("known={:d}", known));
        const Raw got = read(out);
        for (int64_t i = 0; i < 2 * offsets * width; ++i) {
          const int64_t column = beginOf(i / width) + i % width;
          const bool inside = column >= 0 && column < extent && row >= 0 && row < 2;
          ASSERT_EQ(got[i], inside ? elementAt(type, column) : 0)
              << nameOf(type) << ", known " << known << ", row " << row << ", tile at " << beginOf(i / width)
              << ", lane " << i % width;
        }
      }
    }
}

KILN_ON_PROCESSORS(Ends);

// --- Masks in loops: a mask may be omitted in iterations in which it is all true, and only there ---------------------

constexpr int64_t rows = 8, columns = 16;

/// The ways to write a mask of a tile at row m and column n of something with T columns.
enum Form { Extent, WideExtent, Causal, Turned, Window, Reversed, Beside, Cut, Two, formCount };

struct SplitConfig {
  int form = 0, begin = 0, step = columns;
};

Tile maskOf(Tile m, Tile n, Tile T, Tile huge, int form) {
  Tile row = unsqueeze(iota(rows), -1), column = unsqueeze(iota(columns), 0); // (ROWS, 1), (1, COLUMNS)
  switch (form) {
  case Extent:
    return column < cast(T - n, i32);
  case WideExtent:
    return n + unsqueeze(iota(columns, i64), 0) < T;
  case Causal:
    return column - row <= cast(m - n, i32);
  case Turned:
    return row - column <= cast(n - m, i32);
  case Window:
    return (column - row <= cast(m - n, i32)) & (row - column < cast(n - m + 24, i32));
  case Reversed:
    return cast(n - m, i32) >= row - column;
  case Beside: // a number of rows' own beside the scalar
    return (column < cast(T - n, i32)) & (row < 5);
  case Cut: // what is above 32 bits is lost
    return column <= cast(huge - n, i32);
  default: // one tile chosen by a mask, another by its opposite
    return !(column - row > cast(m - n, i32));
  }
}

bool isSeen(int64_t row, int64_t column, int64_t m, int64_t n, int64_t T, int64_t huge, int form) {
  switch (form) {
  case Extent:
  case WideExtent:
    return n + column < T;
  case Causal:
  case Two:
    return n + column <= m + row;
  case Turned:
  case Reversed:
    return m + row <= n + column;
  case Window:
    return n + column <= m + row && m + row < n + column + 24;
  case Beside:
    return n + column < T && row < 5;
  default:
    return column <= static_cast<int32_t>(huge - n);
  }
}

/// Every round counts, in its order: acc · 3 + the element where the mask is true, else + −1 and the round's number.
void underLoop(View x, View large, View y, SplitConfig cfg) {
  Tile m = program_id(0) * rows, T = x.dim(0), huge = large.dim(0);
  Tile acc = zeros(i32, {rows, columns}); // (ROWS, COLUMNS)
  for (Tile n : range(cfg.begin, T, cfg.step)) {
    Tile mask = broadcast(maskOf(m, n, T, huge, cfg.form), {rows, columns}); // (ROWS, COLUMNS)
    Tile value = unsqueeze(load(x, {n}, {columns}), 0);                      // (1, COLUMNS)
    acc = acc * 3 + where(mask, value, -1 - cast(n, i32));                   // (ROWS, COLUMNS)
  }
  store(y, {m, 0}, acc);
}
const Kernel underLoopKernel =
    kernel("under_loop", underLoop,
           {field("form", &SplitConfig::form), field("begin", &SplitConfig::begin), field("step", &SplitConfig::step)});

Raw expected(const Raw &x, int64_t programs, int64_t huge, SplitConfig cfg) {
  const auto T = static_cast<int64_t>(x.size());
  Raw result;
  for (int64_t i = 0; i < programs * rows; ++i)
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t m = i / rows * rows;
      uint32_t acc = 0;
      for (int64_t n = cfg.begin; n < T; n += cfg.step) {
        const auto value = static_cast<uint32_t>(n + column >= 0 && n + column < T ? x[n + column] : 0);
        const bool seen = isSeen(i % rows, column, m, n, T, huge, cfg.form);
        acc = acc * 3 + (seen ? value : static_cast<uint32_t>(-1 - n));
      }
      result.push_back(acc);
    }
  return result;
}

// --- Masks at several positions -------------------------------------------------------------------------------------

/// y = m + flip(m, 0), of x under a mask of rows; triangles = t + flip(t, 0), of x up to a diagonal. x (rows, columns).
void mirror(View x, View y, View triangles, Tile first, BoundConfig cfg) {
  const Shape shape = {cfg.rows, cfg.columns};
  const Tile row = unsqueeze(iota(cfg.rows), -1), column = unsqueeze(iota(cfg.columns), 0);
  const Tile m = load(x, {0, 0}, shape, {.mask = row - column * 0 >= first});
  store(y, {0, 0}, m + flip(m, 0));
  const Tile t = where(column <= row + first, load(x, {0, 0}, shape), 0);
  store(triangles, {0, 0}, t + flip(t, 0));
}
const Kernel mirrorKernel =
    kernel("mirror", mirror, {field("rows", &BoundConfig::rows), field("columns", &BoundConfig::columns)});

// A row may be read where the mask holds and, in the same sum, where it does not.
TEST_P(Masks, HoldAtEachPositionThatIsRead) {
  for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{64, 16}, {8, 64}, {32, 32}, {5, 300}})
    for (const int32_t first : {0, 2, 24, 70}) {
      Raw words(rows * columns), masked, triangles;
      std::iota(words.begin(), words.end(), 1);
      const auto at = [&](int64_t m, int64_t n, bool isInside) { return isInside ? words[m * columns + n] : 0; };
      for (int64_t m = 0; m < rows; ++m)
        for (int64_t n = 0; n < columns; ++n) {
          const int64_t other = rows - 1 - m;
          masked.push_back(at(m, n, m >= first) + at(other, n, other >= first));
          triangles.push_back(at(m, n, n <= m + first) + at(other, n, n <= other + first));
        }
      const Shape shape = {rows, columns};
      const Tensor x = tensor(i32, shape, words), y(device, i32, shape), z(device, i32, shape);
      launch(mirrorKernel, {x.ref(), y.ref(), z.ref(), first},
             BoundConfig{.rows = static_cast<int>(rows), .columns = static_cast<int>(columns)});
      EXPECT_EQ(read(y), masked) << rows << " x " << columns << ", from row " << first;
      EXPECT_EQ(read(z), triangles) << rows << " x " << columns << ", diagonal " << first;
    }
}

/// x (rows, columns) under a mask of rows, and 7 beyond a diagonal. y: the first, stored under the mirrored mask. z:
/// the second, stored up to the mirrored diagonal. pairs (rows, 2 columns): the first at even columns, or at odd ones
/// where the mirrored mask holds.
void mirrorStores(View x, View y, View z, View pairs, Tile first, BoundConfig cfg) {
  const Shape shape = {cfg.rows, cfg.columns};
  const Tile row = unsqueeze(iota(cfg.rows), -1), column = unsqueeze(iota(cfg.columns), 0);
  const Tile mask = row - column * 0 >= first, triangle = column - row <= cast(first, i32);
  const Tile m = load(x, {0, 0}, shape, {.mask = mask});
  store(y, {0, 0}, m, {.mask = flip(mask, 0)});
  store(z, {0, 0}, where(triangle, load(x, {0, 0}, shape), 7), {.mask = flip(triangle, 0)});
  store(pairs, {broadcast(row, shape), column * 2 + where(flip(mask, 0), 1, 0)}, m);
}
const Kernel mirrorStoresKernel =
    kernel("mirror_stores", mirrorStores, {field("rows", &BoundConfig::rows), field("columns", &BoundConfig::columns)});

// A mask of a value is another mask where a store's mask, or its positions, read it at other elements.
TEST_P(Masks, HoldAtEachPositionThatAStoreReads) {
  for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{64, 16}, {8, 64}, {32, 32}, {5, 300}})
    for (const int32_t first : {0, 2, 24, 70}) {
      Raw words(rows * columns), masked(rows * columns, 9), triangles = masked, paired(2 * rows * columns, 9);
      std::iota(words.begin(), words.end(), 1000);
      const Raw before = masked, bothBefore = paired;
      for (int64_t i = 0; i < rows * columns; ++i) {
        const int64_t m = i / columns, n = i % columns, other = rows - 1 - m;
        const uint64_t value = m >= first ? words[i] : 0;
        if (other >= first)
          masked[i] = value;
        if (n <= other + first)
          triangles[i] = n <= m + first ? words[i] : 7;
        paired[2 * i + (other >= first)] = value;
      }
      const Shape shape = {rows, columns};
      const Tensor x = tensor(i32, shape, words), y = tensor(i32, shape, before), z = tensor(i32, shape, before),
                   pairs = tensor(i32, {rows, 2 * columns}, bothBefore);
      launch(mirrorStoresKernel, {x.ref(), y.ref(), z.ref(), pairs.ref(), first},
             BoundConfig{.rows = static_cast<int>(rows), .columns = static_cast<int>(columns)});
      EXPECT_EQ(read(y), masked) << rows << " x " << columns << ", from row " << first;
      EXPECT_EQ(read(z), triangles) << rows << " x " << columns << ", diagonal " << first;
      EXPECT_EQ(read(pairs), paired) << rows << " x " << columns << ", from row " << first;
    }
}

/// y (rows, rows): y = 2 y + s, up to a diagonal that each iteration moves by 8, where s = x · xᵀ. x (rows, columns).
void movingTriangles(View x, View y, Tile iterations, BoundConfig cfg) {
  const Tile a = load(x, {0, 0}, {cfg.rows, cfg.columns}), s = dot(a, transpose(a));
  const Tile distance = unsqueeze(iota(cfg.rows), 0) - unsqueeze(iota(cfg.rows), -1);
  Tile acc = zeros(i32, s.shape());
  for (Tile i : range(0, iterations))
    acc = acc * 2 + where(distance <= cast(i, i32) * 8 - 20, s, 0);
  store(y, {0, 0}, acc);
}
const Kernel movingTrianglesKernel = kernel(
    "moving_triangles", movingTriangles, {field("rows", &BoundConfig::rows), field("columns", &BoundConfig::columns)});

// A product before a loop is computed where one of the loop's triangles reads it.
TEST_P(Masks, OfAProductMayMoveInALaterLoop) {
  constexpr int64_t rows = 40, columns = 16;
  for (const int64_t iterations : {0, 1, 5}) {
    Raw x(rows * columns), want(rows * rows);
    for (int64_t i = 0; i < rows * columns; ++i)
      x[i] = i * 5 % 7;
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t n = 0; n < rows; ++n) {
        uint64_t s = 0, &acc = want[m * rows + n];
        for (int64_t k = 0; k < columns; ++k)
          s += x[m * columns + k] * x[n * columns + k];
        for (int64_t i = 0; i < iterations; ++i)
          acc = acc * 2 + (n - m <= i * 8 - 20 ? s : 0);
      }
    const Tensor y(device, i32, {rows, rows});
    launch(movingTrianglesKernel, {tensor(i8, {rows, columns}, x).ref(), y.ref(), iterations},
           BoundConfig{.rows = rows, .columns = columns});
    EXPECT_EQ(read(y), want) << iterations << " iterations";
  }
}

class Split : public Semantics {};

TEST_P(Split, MasksInLoopsKeepTheirRounds) {
  constexpr int64_t programs = 7;
  const Tensor one = tensor(i32, {1}, {0});
  for (int form = 0; form < formCount; ++form)
    for (const auto &[begin, step] : {std::pair{0, 16}, {-21, 7}, {3, 40}})
      for (const int64_t T : {0, 1, 16, 40, 56, 93}) {
        Raw words;
        for (int64_t i = 0; i < T; ++i)
          words.push_back(1000 * i + 7);
        // One number as an extent: a view of that size, of which only the extent is read.
        const int64_t huge = (int64_t{1} << 32) + 37;
        TensorRef large = one.ref();
        large.extents = {huge};
        large.strides = {0};
        const Tensor x = tensor(i32, {T}, words), y(device, i32, {programs * rows, columns});
        const SplitConfig cfg{form, begin, step};
        launch(underLoopKernel, {x.ref(), large, y.ref()}, cfg, programs);
        EXPECT_EQ(read(y), expected(words, programs, huge, cfg))
            << "form " << form << ", from " << begin << " by " << step << " to " << T;
      }
}

KILN_ON_PROCESSORS(Split);

} // namespace
