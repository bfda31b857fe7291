// Masks of loads and stores that are true for all elements of some vectors and not of others. Masked-off elements are
// neither read nor written. Results computed from masks are right in both cases, and so are sums of loaded elements.

#include "test/runtime/semantics/semantics.h"

#include <algorithm>
#include <limits>

using namespace kiln;
using namespace kiln::test;

namespace {

enum Form { both, reading, writing, chosen, two, forms };

struct Config {
  int rows = 3, columns = 1, form = 0;
};

/// x, y, masks, others (rows, columns); sums (rows) of the loaded elements.
void moveMasked(View x, View masks, View others, View y, View sums, Config cfg) {
  const Shape shape = {cfg.rows, cfg.columns};
  Tile mask = load(masks, {0, 0}, shape), other = load(others, {0, 0}, shape);
  Tile tile = cfg.form == writing ? load(x, {0, 0}, shape)
              : cfg.form == two   ? load(x, {0, 0}, shape, {.mask = other})
                                  : load(x, {0, 0}, shape, {.mask = mask});
  if (cfg.form == chosen)
    tile = where(mask, tile + 1, 50);
  if (cfg.form == reading || cfg.form == chosen)
    store(y, {0, 0}, tile);
  else
    store(y, {0, 0}, tile, {.mask = mask});
  store(sums, {0}, sum(cast(tile, i32)));
}
const Kernel moveMaskedKernel =
    kernel("move_masked", moveMasked,
           {field("rows", &Config::rows), field("columns", &Config::columns), field("form", &Config::form)});

class Masks : public Semantics {};

TEST_P(Masks, HoldForWholeVectorsOrNot) {
  constexpr int64_t rows = 3;
  int kinds = 0;
  for (const int64_t columns : {5, 64, 300})
    for (int form = 0; form < forms; ++form)
      for (const int64_t known : {columns, columns - 1, columns / 2, int64_t(33), int64_t(0)}) {
        const Type type = std::array{f32, i8, i32, bf16, i64}[kinds++ % 5];
        const int64_t count = rows * columns;
        const auto wordOf = [&](int64_t number) {
          return isFloat(type) ? rawOfReal(type, static_cast<double>(number)) : rawOfInteger(type, number);
        };
        // The first row's mask holds up to a column, the second's from it on, the third's for most.
        Raw have(count), before(count, wordOf(99)), mask(count), other(count);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t row = i / columns, column = i % columns;
          have[i] = wordOf(i * 7 % 41 + 1);
          mask[i] = row == 0 ? column < known : row == 1 ? column >= known : column % 67 != 66;
          other[i] = column % 97 != 40;
        }
        const Tensor x = tensor(type, {rows, columns}, have), y = tensor(type, {rows, columns}, before);
        const Tensor masks = tensor(boolean, {rows, columns}, mask), others = tensor(boolean, {rows, columns}, other);
        const Tensor sums(device, i32, {rows});
        launch(moveMaskedKernel, {x.ref(), masks.ref(), others.ref(), y.ref(), sums.ref()},
               "columns=" + std::to_string(columns) + ",form=" + std::to_string(form));
        const Raw got = read(y), added = read(sums);
        for (int64_t row = 0; row < rows; ++row) {
          int64_t total = 0;
          for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
            const bool isRead = form == writing || (form == two ? other[i] : mask[i]) != 0;
            const bool isWritten = form == reading || form == chosen || mask[i] != 0;
            int64_t number = isRead ? i * 7 % 41 + 1 : 0;
            if (form == chosen)
              number = mask[i] ? number + 1 : 50;
            total += number;
            ASSERT_EQ(got[i], isWritten ? wordOf(number) : before[i])
                << nameOf(type) << " columns " << columns << " form " << form << " up to " << known << " element " << i;
          }
          ASSERT_EQ(integerOf(i32, added[row]), total)
              << nameOf(type) << " columns " << columns << " form " << form << " up to " << known << " row " << row;
        }
      }
}

// --- Masks of positions, whose ends tell of all ----------------------------------------------------------------------

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
  const auto plus = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  };
  const int64_t at = plus(begin, column);
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
    return low <= plus(begin, -3 * column);
  case valley:
    return std::max(at, plus(high, -column)) >= low;
  case unlike:
    return at != high;
  default:
    return static_cast<int32_t>(plus(static_cast<int32_t>(begin), column)) < static_cast<int32_t>(high);
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
        const auto wordOf = [&](int64_t number) {
          return isFloat(type) ? rawOfReal(type, static_cast<double>(number)) : rawOfInteger(type, number);
        };
        Raw have(count), want(count, wordOf(99));
        std::vector<int64_t> total(rows, 0);
        for (int64_t i = 0; i < count; ++i) {
          have[i] = wordOf(i % 41 + 1);
          if (i / columns < rows - 1 && isInBounds(begin, i % columns, low, high, bound)) {
            want[i] = have[i];
            total[i / columns] += i % 41 + 1;
          }
        }
        const Tensor x = tensor(type, {rows, columns}, have), y = tensor(type, {rows, columns}, Raw(count, wordOf(99)));
        const Tensor sums(device, i32, {rows});
        launch(moveInBoundsKernel, {x.ref(), y.ref(), sums.ref(), numbers[0], numbers[1], numbers[2]},
               "columns=" + std::to_string(columns) + ",bound=" + std::to_string(bound) +
                   ",near=" + std::to_string(isNear));
        const Raw got = read(y), added = read(sums);
        const std::string where =
            std::string(nameOf(type)) + " bound " + std::to_string(bound) + " from " + std::to_string(begin);
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(got[i], want[i]) << where << " element " << i;
        for (int64_t row = 0; row < rows; ++row)
          ASSERT_EQ(integerOf(i32, added[row]), total[row]) << where << " row " << row;
      }
}

KILN_ON_PROCESSORS(Masks);

} // namespace
