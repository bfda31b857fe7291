// Parts of tiles: extract and what takes tiles apart and puts them together, as they are loaded and after arithmetic,
// beside plain indices.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Parts : public Semantics {};

struct BoxConfig {
  int rows = 1, columns = 1;            // of the source
  int beginRow = 0, stepRow = 1, m = 1; // of what is taken of it
  int beginColumn = 0, stepColumn = 1, n = 1;
  int warps = 4;
};
const std::vector<Field> boxFields = {field("rows", &BoxConfig::rows),
                                      field("columns", &BoxConfig::columns),
                                      field("begin_row", &BoxConfig::beginRow),
                                      field("step_row", &BoxConfig::stepRow),
                                      field("m", &BoxConfig::m),
                                      field("begin_column", &BoxConfig::beginColumn),
                                      field("step_column", &BoxConfig::stepColumn),
                                      field("n", &BoxConfig::n),
                                      field("warps", &BoxConfig::warps)};

/// A part as it is loaded, after and before arithmetic, and of a sum along the rows.
void takePart(View x, View y, View z, View sums, BoxConfig cfg) {
  const Tile t = load(x, {0, 0}, {cfg.rows, cfg.columns});
  const auto part = [&](const Tile &tile) {
    return extract(tile, {cfg.beginRow, cfg.beginColumn}, {cfg.m, cfg.n}, {cfg.stepRow, cfg.stepColumn});
  };
  store(y, {0, 0}, part(t));
  store(z, {0, 0}, part(t * 3) + 1);
  store(sums, {0}, extract(sum(cast(t, f32)), {cfg.beginRow}, {cfg.m}, {cfg.stepRow}));
}
const Kernel takePartKernel = kernel("take_part", takePart, boxFields);

TEST_P(Parts, ExtractsAnywhereForwardsAndBackwards) {
  const BoxConfig boxes[] = {{1, 64, 0, 1, 1, 16, 1, 32}, {1, 64, 0, 1, 1, 63, -1, 64},
                             {1, 100, 0, 1, 1, 3, 1, 70}, {8, 32, 7, -1, 8, 0, 1, 32},
                             {8, 32, 0, 2, 4, 1, 2, 16},  {5, 7, 4, -2, 3, 6, -3, 3},
                             {16, 16, 3, 1, 1, 5, 1, 1},  {3, 128, 1, 1, 2, 127, -4, 32},
                             {64, 2, 0, 1, 64, 1, 1, 1},  {32, 33, 31, -1, 32, 32, -1, 33}};
  const Type types[] = {f32, i8, bf16, i64};
  int cases = 0;
  for (BoxConfig cfg : boxes) {
    const Type type = types[cases % 4];
    cfg.warps = 1 << cases++ % 4;
    const auto word = [&](int64_t value) {
      return isFloat(type) ? rawOfReal(type, static_cast<double>(value)) : rawOfInteger(type, value);
    };
    Raw raw, want, changed;
    for (int64_t i = 0; i < cfg.rows * cfg.columns; ++i)
      raw.push_back(word(i * 7 % 37));
    std::vector<float> sums;
    for (int row = 0; row < cfg.m; ++row) {
      const int from = cfg.beginRow + row * cfg.stepRow;
      float sum = 0;
      for (int column = 0; column < cfg.columns; ++column)
        sum += static_cast<float>((from * cfg.columns + column) * 7 % 37);
      sums.push_back(sum);
      for (int column = 0; column < cfg.n; ++column) {
        const int64_t number = int64_t{7} * (from * cfg.columns + cfg.beginColumn + column * cfg.stepColumn) % 37;
        want.push_back(word(number));
        changed.push_back(word(3 * number + 1));
      }
    }
    const Tensor x = tensor(type, {cfg.rows, cfg.columns}, raw), y(device, type, {cfg.m, cfg.n}),
                 z(device, type, {cfg.m, cfg.n}), s(device, f32, {cfg.m});
    std::string text;
    for (const auto &[name, value] :
         {std::pair("rows", cfg.rows), std::pair("columns", cfg.columns), std::pair("begin_row", cfg.beginRow),
          std::pair("step_row", cfg.stepRow), std::pair("m", cfg.m), std::pair("begin_column", cfg.beginColumn),
          std::pair("step_column", cfg.stepColumn), std::pair("n", cfg.n), std::pair("warps", cfg.warps)})
      text += (text.empty() ? "" : ",") + std::string(name) + "=" + std::to_string(value);
    launch(takePartKernel, {x.ref(), y.ref(), z.ref(), s.ref()}, text);
    SCOPED_TRACE(nameOf(type) + (" " + text));
    EXPECT_EQ(read(y), want);
    EXPECT_EQ(read(z), changed);
    EXPECT_EQ(s.downloadFloats(), sums);
  }
}

/// Pairs taken apart, turned by a quarter, and put together again: rotary positions.
void rotate(View x, View out) {
  const auto [a, b] = split(reshape(load(x, {0, 0}, {4, 32}), {4, 16, 2}));
  store(out, {0, 0}, interleave(-b, a));
  store(out, {4, 0}, concat({flip(a), b + 1}, 1));
}
const Kernel rotateKernel = kernel("rotate", rotate);

TEST_P(Parts, SplitInterleaveAndFlip) {
  const Tensor x = counting(i32, {4, 32}), out(device, i32, {8, 32});
  launch(rotateKernel, {x.ref(), out.ref()});
  const Raw got = read(out);
  for (int row = 0; row < 4; ++row)
    for (int pair = 0; pair < 16; ++pair) {
      const int a = row * 32 + 2 * pair, b = a + 1;
      EXPECT_EQ(static_cast<int32_t>(got[row * 32 + 2 * pair]), -b);
      EXPECT_EQ(static_cast<int32_t>(got[row * 32 + 2 * pair + 1]), a);
      EXPECT_EQ(static_cast<int32_t>(got[(row + 4) * 32 + 15 - pair]), a);
      EXPECT_EQ(static_cast<int32_t>(got[(row + 4) * 32 + 16 + pair]), b + 1);
    }
}

/// Three parts of different extents along either axis, a frame, and a part replaced.
void assemble(View x, View rows, View columns, View framed, View replaced) {
  const Tile t = load(x, {0, 0}, {3, 5});
  store(rows, {0, 0}, concat({t, extract(t, {1, 0}, {2, 5}) + 100, extract(t, {0, 0}, {1, 5})}));
  store(columns, {0, 0}, concat({extract(t, {0, 2}, {3, 1}), t * 2, extract(t, {0, 0}, {3, 3})}, -1));
  store(framed, {0, 0}, pad(t, {1, 0}, {2, 3}, -7));
  store(replaced, {0, 0}, insert(t, full(t.type(), {2, 2}, 50), {1, 2}));
}
const Kernel assembleKernel = kernel("assemble", assemble);

TEST_P(Parts, ConcatPadAndInsert) {
  for (const Type type : {i32, f32, i8}) {
    const Tensor x = counting(type, {3, 5}), rows(device, type, {6, 5}), columns(device, type, {3, 9}),
                 framed(device, type, {6, 8}), replaced(device, type, {3, 5});
    launch(assembleKernel, {x.ref(), rows.ref(), columns.ref(), framed.ref(), replaced.ref()});
    const auto numbers = [&](const Tensor &tensor) {
      std::vector<int64_t> result;
      for (const uint64_t word : read(tensor))
        result.push_back(isFloat(type) ? static_cast<int64_t>(realOf(type, word)) : integerOf(type, word));
      return result;
    };
    EXPECT_EQ(numbers(rows),
              (std::vector<int64_t>{0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10, 11, 12, 13, 14,
                                    105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 0,  1,  2,  3,  4}));
    EXPECT_EQ(numbers(columns), (std::vector<int64_t>{2,  0, 2, 4, 6,  8,  0,  1,  2,  7,  10, 12, 14, 16,
                                                      18, 5, 6, 7, 12, 20, 22, 24, 26, 28, 10, 11, 12}));
    const std::vector<int64_t> frame = numbers(framed), part = numbers(replaced);
    for (int row = 0; row < 6; ++row)
      for (int column = 0; column < 8; ++column) {
        const bool inside = row >= 1 && row < 4 && column < 5;
        EXPECT_EQ(frame[row * 8 + column], inside ? (row - 1) * 5 + column : -7) << row << ", " << column;
      }
    for (int row = 0; row < 3; ++row)
      for (int column = 0; column < 5; ++column) {
        const bool inside = row >= 1 && column >= 2 && column < 4;
        EXPECT_EQ(part[row * 5 + column], inside ? 50 : row * 5 + column) << row << ", " << column;
      }
  }
}

struct AxisConfig {
  int axis = 0;
};

/// Of rank 5, the most that there is: one behind the other, framed, one in the other, and interleaved.
void assembleMost(View x, View both, View framed, View replaced, View mixed, AxisConfig cfg) {
  const Shape first = {0, 0, 0, 0, 0};
  const Tile t = load(x, {0, 0, 0, 0, 0}, {1, 2, 3, 2, 4});
  store(both, {0, 0, 0, 0, 0}, concat({t, t + 100, t + 200}, cfg.axis));
  Shape before = first, after = first;
  before[cfg.axis] = 1;
  after[cfg.axis] = 2;
  store(framed, {0, 0, 0, 0, 0}, pad(t, before, after, -7));
  store(replaced, {0, 0, 0, 0, 0}, insert(t, extract(t, first, {1, 1, 2, 2, 3}) + 100, {0, 1, 1, 0, 1}));
  store(mixed, {0, 0, 0, 0, 0}, interleave(t, t + 100));
}
const Kernel assembleMostKernel = kernel("assemble_most", assembleMost, {field("axis", &AxisConfig::axis)});

TEST_P(Parts, OfTheHighestRank) {
  const Shape shape = {1, 2, 3, 2, 4};
  const auto numberAt = [&](const Shape &at) { // in the tile
    int64_t number = 0;
    for (size_t dim = 0; dim < 5; ++dim)
      number = number * shape[dim] + at[dim];
    return number;
  };
  const auto expectAll = [&](const Tensor &got, const Shape &whole, auto expected, const char *what) {
    const Raw words = read(got);
    for (int64_t i = 0; i < std::ssize(words); ++i) {
      Shape at(5);
      for (int64_t dim = 4, rest = i; dim >= 0; rest /= whole[dim--])
        at[dim] = rest % whole[dim];
      ASSERT_EQ(integerOf(i32, words[i]), expected(at)) << what << ", element " << i;
    }
  };
  const Tensor x = counting(i32, shape), replaced(device, i32, shape), mixed(device, i32, {1, 2, 3, 2, 8});
  for (int axis = 0; axis < 5; ++axis) {
    Shape three = shape, frame = shape;
    three[axis] *= 3;
    frame[axis] += 3;
    const Tensor both(device, i32, three), framed(device, i32, frame);
    launch(assembleMostKernel, {x.ref(), both.ref(), framed.ref(), replaced.ref(), mixed.ref()},
           "axis=" + std::to_string(axis));
    expectAll(
        both, three,
        [&](Shape at) {
          const int64_t part = at[axis] / shape[axis];
          at[axis] %= shape[axis];
          return numberAt(at) + 100 * part;
        },
        "concat");
    expectAll(
        framed, frame, [&](Shape at) { return at[axis]-- == 0 || at[axis] >= shape[axis] ? -7 : numberAt(at); }, "pad");
  }
  expectAll(
      replaced, shape,
      [&](const Shape &at) {
        const bool isInside = at[1] == 1 && at[2] >= 1 && at[4] >= 1;
        return isInside ? numberAt({0, 0, at[2] - 1, at[3], at[4] - 1}) + 100 : numberAt(at);
      },
      "insert");
  expectAll(
      mixed, {1, 2, 3, 2, 8},
      [&](Shape at) {
        const int64_t which = at[4] % 2;
        at[4] /= 2;
        return numberAt(at) + 100 * which;
      },
      "interleave");
}

KILN_ON_PROCESSORS(Parts);

} // namespace
