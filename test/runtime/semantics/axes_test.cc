// Reductions along several axes, all of them, those that keep their axes at extent 1, and those of wide columns.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class SeveralAxes : public Semantics {};
const Shape shape{3, 4, 5};

struct ChoiceConfig {
  int axes = 1;       // bit i: along axis i
  bool keeps = false; // at extent 1
};
std::vector<int> axesOf(int bits) {
  std::vector<int> axes;
  for (int axis = 2; axis >= 0; --axis) // in any order, counted from either end
    if (bits >> axis & 1)
      axes.push_back(axis % 2 ? axis - 3 : axis);
  return axes;
}

void reduceAxes(View x, View out, View best, ChoiceConfig cfg) {
  Tile a = load(x, {0, 0, 0}, shape);
  const std::vector<int> axes = axesOf(cfg.axes);
  int row = 0;
  for (const Tile &result : {sum(a, axes, cfg.keeps), reduce_max(a, axes, cfg.keeps), reduce_min(a, axes, cfg.keeps)}) {
    int64_t count = 1;
    for (const int64_t extent : result.shape())
      count *= extent;
    store(out, {row++, 0}, cast(reshape(result, {count}), out.type()));
    if (row == 1)
      store(best, {0}, reshape(argmax(a, axes, cfg.keeps), {count}));
    if (cfg.keeps)
      store(out, {row + 2, 0}, cast(reshape(broadcast(result, shape), {60}), out.type())); // it broadcasts back
  }
}
const Kernel reduceAxesKernel =
    kernel("reduce_axes", reduceAxes, {field("axes", &ChoiceConfig::axes), field("keeps", &ChoiceConfig::keeps)});

TEST_P(SeveralAxes, AnyOfThemAtOnce) {
  std::mt19937 random(5);
  for (const Type type : {boolean, i8, bf16, f64})
    for (int bits = 1; bits < 8; ++bits)
      for (const bool keeps : {false, true}) {
        std::vector<int> numbers;
        Raw raw;
        for (int i = 0; i < 60; ++i) {
          numbers.push_back(type == boolean ? random() % 2 : static_cast<int>(random() % 7) - 3);
          raw.push_back(isFloat(type) ? rawOfReal(type, numbers[i]) : rawOfInteger(type, numbers[i]));
        }
        const Tensor x = tensor(type, shape, raw), out(device, i32, {6, 60}), best(device, i32, {60});
        launch(reduceAxesKernel, {x.ref(), out.ref(), best.ref()},
               "axes=" + std::to_string(bits) + ",keeps=" + std::to_string(keeps));
        int totals[60] = {}, most[60], least[60], places[60], seen[60] = {}, line[60];
        for (int i = 0; i < 60; ++i) {
          const int at[] = {i / 20, i / 5 % 4, i % 5};
          int group = 0;
          for (int axis = 0; axis < 3; ++axis)
            if (!(bits >> axis & 1))
              group = group * static_cast<int>(shape[axis]) + at[axis];
          line[i] = group;
          totals[group] += numbers[i];
          if (seen[group] == 0 || numbers[i] > most[group]) {
            most[group] = numbers[i];
            places[group] = seen[group];
          }
          least[group] = seen[group] ? std::min(least[group], numbers[i]) : numbers[i];
          ++seen[group];
        }
        const Raw got = read(out), where = read(best);
        for (int i = 0; i < 60; ++i) {
          const int want[] = {totals[line[i]], most[line[i]], least[line[i]]};
          for (int row = 0; row < 3; ++row) {
            ASSERT_EQ(static_cast<int32_t>(got[row * 60 + line[i]]), want[row])
                << nameOf(type) << ", axes " << bits << ", keeps " << keeps << ", row " << row << ", element " << i;
            if (keeps) {
              ASSERT_EQ(static_cast<int32_t>(got[(row + 3) * 60 + i]), want[row]) << nameOf(type) << ", axes " << bits;
            }
          }
          ASSERT_EQ(static_cast<int32_t>(where[line[i]]), places[line[i]]) << nameOf(type) << ", axes " << bits;
        }
      }
}

// 2^12 terms of 1 + 2^-7, which bf16 cannot add up by steps: the sum is rounded once, whatever axes it has.
void narrowSum(View x, View out) {
  Tile a = load(x, {0, 0}, {64, 64});
  store(out, {0}, sum(a, everywhere));
  store(out, {1}, sum(a, {1, 0}));
}
const Kernel narrowSumKernel = kernel("narrow_sum", narrowSum);

TEST_P(SeveralAxes, NarrowSumsAreRoundedOnce) {
  for (const Type type : {bf16, f16}) {
    const double term = 1 + 0x1p-7;
    const Tensor x = tensor(type, {64, 64}, Raw(4096, rawOfReal(type, term))), out(device, type, {2});
    launch(narrowSumKernel, {x.ref(), out.ref()});
    EXPECT_EQ(read(out), Raw(2, rawOfReal(type, 4096 * term))) << nameOf(type);
  }
}

// --- Columns of wide tiles -------------------------------------------------------------------------------------------

struct WideConfig {
  int width = 16;
};

/// Of each column: its sum, where its largest element is, and the sums up to each row; of some that need more
/// arithmetic, too.
void columns(View x, View total, View place, View upTo, View much, WideConfig cfg) {
  const Tile a = load(x, {0, 0}, {3, cfg.width});
  store(total, {0}, sum(a, 0));
  store(place, {0}, argmax(a, 0));
  store(upTo, {0, 0}, cumsum(a, 0));
  const Tile b = (a + 1) * (a - 2) * (a + 3) - a * a * a;
  store(much, {0}, sum(b, 0));
}
const Kernel columnsKernel = kernel("columns", columns, {field("width", &WideConfig::width)});

TEST_P(SeveralAxes, ColumnsOfAnyWidth) {
  int cases = 0;
  for (const int64_t width : {64, 136, 256, 272, 528, 600, 1023})
    for (const int64_t missing : {0, 5}) { // of the view, beside the tile
      const Type type = std::array{i32, f32, i64, i32}[cases++ % 4];
      const auto word = [&](Type type, int64_t value) {
        return isFloat(type) ? rawOfReal(type, static_cast<double>(value)) : rawOfInteger(type, value);
      };
      const auto number = [&](int64_t r, int64_t c) { return c < width - missing ? (r * 5 + c * 3) % 17 - 6 : 0; };
      Raw raw;
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t c = 0; c < width - missing; ++c)
          raw.push_back(word(type, number(r, c)));
      const Tensor x = tensor(type, {3, width - missing}, raw), total(device, type, {width}),
                   place(device, i32, {width}), upTo(device, type, {3, width}), much(device, type, {width});
      launch(columnsKernel, {x.ref(), total.ref(), place.ref(), upTo.ref(), much.ref()},
             "width=" + std::to_string(width));
      SCOPED_TRACE(nameOf(type) + std::string(" ") + std::to_string(width) + " less " + std::to_string(missing));
      const Raw totals = read(total), places = read(place), all = read(upTo), more = read(much);
      for (int64_t c = 0; c < width; ++c) {
        int64_t sum = 0, sumOfMuch = 0, best = 0;
        for (int64_t r = 0; r < 3; ++r) {
          const int64_t a = number(r, c);
          sum += a;
          sumOfMuch += (a + 1) * (a - 2) * (a + 3) - a * a * a;
          best = a > number(best, c) ? r : best;
          ASSERT_EQ(all[r * width + c], word(type, sum)) << r << ", " << c;
        }
        ASSERT_EQ(totals[c], word(type, sum)) << c;
        ASSERT_EQ(places[c], word(i32, best)) << c;
        ASSERT_EQ(more[c], word(type, sumOfMuch)) << c;
      }
    }
}

KILN_ON_PROCESSORS(SeveralAxes);

} // namespace
