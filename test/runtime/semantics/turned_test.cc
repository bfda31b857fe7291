// Transposed tiles of the extents and types that CPUs turn block by block, whole, over the edges of views, and of what
// was computed; and rows that are chosen by where they lie, of which CPUs compute those alone.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Turned : public Semantics {};

struct TurnConfig {
  int planes = 1, rows = 16, columns = 16;
  bool outermost = false; // whether rows become planes, too
};
const std::vector<Field> turnFields = {field("planes", &TurnConfig::planes), field("rows", &TurnConfig::rows),
                                       field("columns", &TurnConfig::columns),
                                       field("outermost", &TurnConfig::outermost)};

/// x transposed as it is, after little and after much arithmetic, and for several readers; and back.
void turnAll(View x, View y, View little, View much, View both, View back, TurnConfig cfg) {
  const Tile t = load(x, {0, 0, 0}, {cfg.planes, cfg.rows, cfg.columns});
  const std::vector<int> order = cfg.outermost ? std::vector<int>{2, 0, 1} : std::vector<int>{0, 2, 1};
  const Tile turned = transpose(t, order);
  store(y, {0, 0, 0}, turned);
  store(little, {0, 0, 0}, transpose(t + 1, order));
  store(much, {0, 0, 0}, transpose((t + 1) * 2 - (t + 2) * (t - t + 1), order));
  store(both, {0, 0, 0}, turned + reduce_max(turned, 2, true));
  store(back, {0, 0, 0}, transpose(transpose(t) + 1));
}
const Kernel turnKernel = kernel("turn_all", turnAll, turnFields);

TEST_P(Turned, EveryExtentTypeAndOrder) {
  const std::array<int64_t, 3> shapes[] = {{1, 16, 16}, {1, 32, 64}, {2, 17, 40}, {3, 24, 8}, {1, 20, 19}, {2, 8, 8}};
  const Type types[] = {f32, i8, bf16, f64, i16, f16, i64};
  int cases = 0;
  for (const auto &[planes, rows, columns] : shapes)
    for (const bool outermost : {false, true})
      for (const int64_t missing : {0, 3}) { // of the view, below and beside the tile
        const Type type = types[cases++ % 7];
        const auto word = [&](int64_t value) {
          return isFloat(type) ? rawOfReal(type, static_cast<double>(value)) : rawOfInteger(type, value);
        };
        const int64_t height = rows - missing, width = columns - missing;
        const auto number = [&](int64_t p, int64_t r, int64_t c) { // 0 outside
          return r < height && c < width ? (p * 37 + r * 7 + c * 3) % 29 : 0;
        };
        Raw raw;
        for (int64_t p = 0; p < planes; ++p)
          for (int64_t r = 0; r < height; ++r)
            for (int64_t c = 0; c < width; ++c)
              raw.push_back(word(number(p, r, c)));
        const Shape to = outermost ? Shape{columns, planes, rows} : Shape{planes, columns, rows};
        const Tensor x = tensor(type, {planes, height, width}, raw), y(device, type, to), little(device, type, to),
                     much(device, type, to), both(device, type, to), back(device, type, {planes, rows, columns});
        launch(turnKernel, {x.ref(), y.ref(), little.ref(), much.ref(), both.ref(), back.ref()},
               "planes=" + std::to_string(planes) + ",rows=" + std::to_string(rows) +
                   ",columns=" + std::to_string(columns) + ",outermost=" + (outermost ? "true" : "false"));
        SCOPED_TRACE(nameOf(type) + std::string(" ") + std::to_string(rows) + " x " + std::to_string(columns) +
                     (outermost ? " outermost" : "") + " less " + std::to_string(missing));
        const Raw plain = read(y), added = read(little), computed = read(much), twice = read(both), again = read(back);
        for (int64_t p = 0; p < planes; ++p)
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < columns; ++c) {
              const int64_t here = number(p, r, c),
                            at = outermost ? (c * planes + p) * rows + r : (p * columns + c) * rows + r;
              int64_t most = 0;
              for (int64_t other = 0; other < rows; ++other)
                most = std::max(most, number(p, other, c));
              ASSERT_EQ(plain[at], word(here));
              ASSERT_EQ(added[at], word(here + 1));
              ASSERT_EQ(computed[at], word(here));
              ASSERT_EQ(twice[at], word(here + most));
              ASSERT_EQ(again[(p * rows + r) * columns + c], word(here + 1));
            }
      }
}

// --- Rows that are chosen by where they lie --------------------------------------------------------------------------

struct ChooseConfig {
  int rows = 4, width = 32, from = 2;
};

/// Parts that are put together along each axis, and rows from one on that are computed in another way than those
/// before.
void choose(View x, View below, View beside, View between, View ranges, ChooseConfig cfg) {
  const Tile a = load(x, {0, 0}, {cfg.rows, cfg.width});
  const Tile first = a * 2 + a * a, second = (a + 1) * (a - 3), third = a * 5 - a * a * 2;
  store(below, {0, 0}, concat({first, second, third}, 0));
  store(beside, {0, 0}, concat({first, second}, 1));
  const Shape shape{cfg.rows, 1, cfg.width};
  store(between, {0, 0},
        reshape(concat({reshape(first, shape), reshape(second, shape)}, 1), {2 * cfg.rows, cfg.width}));
  const Tile row = reshape(iota(cfg.rows), {cfg.rows, 1});
  store(ranges, {0, 0}, where(row < cfg.from, first, where(row == cfg.rows - 1, second, third)));
}
const Kernel chooseKernel = kernel(
    "choose", choose,
    {field("rows", &ChooseConfig::rows), field("width", &ChooseConfig::width), field("from", &ChooseConfig::from)});

TEST_P(Turned, RowsAreChosenByWhereTheyLie) {
  for (const auto &[rows, width, from] :
       {std::array<int64_t, 3>{4, 32, 2}, {8, 16, 0}, {1, 64, 1}, {6, 20, 3}, {2, 8, 1}}) {
    const Tensor x = counting(i32, {rows, width}), below(device, i32, {3 * rows, width}),
                 beside(device, i32, {rows, 2 * width}), between(device, i32, {2 * rows, width}),
                 ranges(device, i32, {rows, width});
    launch(chooseKernel, {x.ref(), below.ref(), beside.ref(), between.ref(), ranges.ref()},
           "rows=" + std::to_string(rows) + ",width=" + std::to_string(width) + ",from=" + std::to_string(from));
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(width));
    const Raw under = read(below), sides = read(beside), turns = read(between), parts = read(ranges);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < width; ++c) {
        const int64_t a = r * width + c;
        const uint64_t values[] = {rawOfInteger(i32, a * 2 + a * a), rawOfInteger(i32, (a + 1) * (a - 3)),
                                   rawOfInteger(i32, a * 5 - a * a * 2)};
        for (int64_t part = 0; part < 3; ++part)
          ASSERT_EQ(under[(part * rows + r) * width + c], values[part]) << part;
        for (int64_t part = 0; part < 2; ++part) {
          ASSERT_EQ(sides[r * 2 * width + part * width + c], values[part]) << part;
          ASSERT_EQ(turns[(2 * r + part) * width + c], values[part]) << part;
        }
        ASSERT_EQ(parts[a], values[r < from ? 0 : r == rows - 1 ? 1 : 2]);
      }
  }
}

KILN_ON_PROCESSORS(Turned);

} // namespace
