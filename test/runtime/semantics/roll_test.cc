// roll: a move whose map is no permutation of bits, so that on a GPU its elements go through shared memory; and
// reshapes of odd extents, which do, too.

#include "test/runtime/semantics/semantics.h"

#include <algorithm>
#include <span>

using namespace kiln;
using namespace kiln::test;

namespace {

class Roll : public Semantics {};

struct RollConfig {
  int planes = 1, rows = 1, columns = 1, by = 0, axis = 0, warps = 4;
};

/// x rolled as it is loaded, after arithmetic, and twice; and whether it is not 0.
void rollAll(View x, View y, View z, View twice, View truth, RollConfig cfg) {
  const Tile t = load(x, {0, 0, 0}, {cfg.planes, cfg.rows, cfg.columns});
  store(y, {0, 0, 0}, roll(t, cfg.by, cfg.axis));
  store(z, {0, 0, 0}, roll(t + 1, cfg.by, cfg.axis) * 2);
  store(twice, {0, 0, 0}, roll(roll(t, cfg.by, cfg.axis), 1));
  store(truth, {0, 0, 0}, roll(t != 0, cfg.by, cfg.axis));
}
const Kernel rollKernel = kernel("roll_all", rollAll,
                                 {field("planes", &RollConfig::planes), field("rows", &RollConfig::rows),
                                  field("columns", &RollConfig::columns), field("by", &RollConfig::by),
                                  field("axis", &RollConfig::axis), field("warps", &RollConfig::warps)});

int64_t wrapped(int64_t i, int64_t extent) { return (i % extent + extent) % extent; }

/// The number at a place of 0, 1, … rolled by `by` along an axis.
int64_t rolledAt(const std::array<int64_t, 3> &shape, std::array<int64_t, 3> at, int64_t by, int axis) {
  at[axis] = wrapped(at[axis] - by, shape[axis]);
  return (at[0] * shape[1] + at[1]) * shape[2] + at[2];
}

TEST_P(Roll, EveryAxisTypeAndNumberOfWarps) {
  const std::array<int64_t, 3> shapes[] = {{1, 1, 64}, {3, 4, 5}, {2, 16, 32}, {1, 5, 100}, {4, 1, 1}};
  const Type types[] = {f32, i8, bf16, f64, i64};
  int cases = 0;
  for (const auto &shape : shapes)
    for (const int axis : {0, 1, 2})
      for (const int by : {1, -1, 5, 16}) {
        const int warps = 1 << cases % 4;
        const Type type = types[cases++ % 5];
        const auto place = [&](int64_t i) {
          return std::array<int64_t, 3>{i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]};
        };
        const auto number = [&](int64_t source) { return source * 7 % 61; }; // that every type holds, and twice
        const auto word = [&](int64_t value) {
          return isFloat(type) ? rawOfReal(type, static_cast<double>(value)) : rawOfInteger(type, value);
        };
        const Shape extents{shape[0], shape[1], shape[2]};
        const int64_t count = shape[0] * shape[1] * shape[2];
        Raw raw, want, doubled, truth, again;
        for (int64_t i = 0; i < count; ++i) {
          raw.push_back(word(number(i)));
          const int64_t source = number(rolledAt(shape, place(i), by, axis));
          want.push_back(word(source));
          doubled.push_back(word(2 * (source + 1)));
          truth.push_back(source != 0);
        }
        for (int64_t i = 0; i < count; ++i) {
          std::array<int64_t, 3> at = place(i);
          at[2] = wrapped(at[2] - 1, shape[2]);
          again.push_back(want[(at[0] * shape[1] + at[1]) * shape[2] + at[2]]);
        }
        const Tensor x = tensor(type, extents, raw), y(device, type, extents), z(device, type, extents),
                     twice(device, type, extents), t(device, boolean, extents);
        launch(rollKernel, {x.ref(), y.ref(), z.ref(), twice.ref(), t.ref()},
               "planes=" + std::to_string(shape[0]) + ",rows=" + std::to_string(shape[1]) +
                   ",columns=" + std::to_string(shape[2]) + ",by=" + std::to_string(by) +
                   ",axis=" + std::to_string(axis) + ",warps=" + std::to_string(warps));
        SCOPED_TRACE(nameOf(type) + std::string(" by ") + std::to_string(by) + " axis " + std::to_string(axis));
        ASSERT_EQ(read(y), want);
        ASSERT_EQ(read(z), doubled);
        ASSERT_EQ(read(twice), again);
        ASSERT_EQ(read(t), truth);
      }
}

/// The sum of each row, where its largest number stands, and a product, each rolled by 5 along its first axis.
void rollResults(View x, View sums, View places, View products) {
  const Tile t = load(x, {0, 0}, {16, 16});
  store(sums, {0}, roll(sum(cast(t, f32)), 5, 0));
  store(places, {0}, roll(argmax(t, 1), 5, 0));
  store(products, {0, 0}, roll(dot(t, transpose(t)), 5, 0));
}
const Kernel rollResultsKernel = kernel("roll_results", rollResults);

// What a reduction or a product leaves lies in a layout of its own, and what is stored in another.
TEST_P(Roll, TakesWhatOtherOperationsLeave) {
  std::vector<float> numbers(256), sums(16), products(256);
  Raw places(16);
  for (int i = 0; i < 256; ++i)
    numbers[i] = static_cast<float>(i * 7 % 32);
  for (int i = 0; i < 16; ++i) {
    const int to = (i + 5) % 16;
    const auto row = std::span(numbers).subspan(16 * i, 16);
    places[to] = std::ranges::max_element(row) - row.begin();
    for (int j = 0; j < 16; ++j) {
      sums[to] += row[j];
      for (int k = 0; k < 16; ++k)
        products[16 * to + j] += row[k] * numbers[16 * j + k];
    }
  }
  for (const Type type : {f32, bf16}) {
    Tensor x(device, type, {16, 16});
    const Tensor s(device, f32, {16}), a(device, i32, {16}), p(device, f32, {16, 16});
    x.uploadFloats(numbers);
    launch(rollResultsKernel, {x.ref(), s.ref(), a.ref(), p.ref()});
    EXPECT_EQ(s.downloadFloats(), sums);
    EXPECT_EQ(read(a), places);
    EXPECT_EQ(p.downloadFloats(), products);
  }
}

struct ShapeConfig {
  int a = 1, b = 1, c = 1, d = 1;
};

/// An (a, b) tile as (c, d), in memory of that shape, as loaded and after arithmetic.
void reshapeAll(View x, View y, View z, ShapeConfig cfg) {
  const Tile t = load(x, {0, 0}, {cfg.a, cfg.b});
  store(y, {0, 0}, reshape(t, {cfg.c, cfg.d}));
  store(z, {0, 0}, reshape(transpose(t), {cfg.c, cfg.d}) + 1);
}
const Kernel reshapeAllKernel = kernel("reshape_all", reshapeAll,
                                       {field("a", &ShapeConfig::a), field("b", &ShapeConfig::b),
                                        field("c", &ShapeConfig::c), field("d", &ShapeConfig::d)});

// Extents that merge and split at powers of two rename registers; others go through memory. Both arrive.
TEST_P(Roll, ReshapesThatMergeAndSplit) {
  const int shapes[][4] = {{8, 8, 4, 16},  {96, 2, 6, 32},  {2, 96, 6, 32},   {3, 64, 192, 1}, {1, 768, 256, 3},
                           {6, 32, 2, 96}, {10, 10, 4, 25}, {48, 16, 16, 48}, {5, 7, 7, 5},    {64, 3, 3, 64}};
  for (const auto &[a, b, c, d] : shapes) {
    const Tensor x = counting(i32, {a, b}), y(device, i32, {c, d}), z(device, i32, {c, d});
    launch(reshapeAllKernel, {x.ref(), y.ref(), z.ref()},
           "a=" + std::to_string(a) + ",b=" + std::to_string(b) + ",c=" + std::to_string(c) +
               ",d=" + std::to_string(d));
    SCOPED_TRACE(std::to_string(a) + "x" + std::to_string(b) + " as " + std::to_string(c) + "x" + std::to_string(d));
    Raw turned;
    for (int64_t i = 0; i < a * b; ++i)
      turned.push_back(i % a * b + i / a + 1);
    EXPECT_EQ(read(y), read(x));
    EXPECT_EQ(read(z), turned);
  }
}

KILN_ON_PROCESSORS(Roll);

} // namespace
