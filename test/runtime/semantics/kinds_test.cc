// Reductions of every kind but sums and extremes, which other tests have: products, bits, the least's place, and verbs
// that are spelt from them.

#include "test/runtime/semantics/semantics.h"

#include <algorithm>
#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class Kinds : public Semantics {};

struct ShapeConfig {
  int rows = 3, columns = 5, axis = 1;
};
const std::vector<Field> shapeFields = {field("rows", &ShapeConfig::rows), field("columns", &ShapeConfig::columns),
                                        field("axis", &ShapeConfig::axis)};
const std::pair<int64_t, int64_t> shapes[] = {{3, 5}, {4, 17}, {70, 6}, {2, 100}};

std::string textOf(int64_t rows, int64_t columns, int axis) {
  return "rows=" + std::to_string(rows) + ",columns=" + std::to_string(columns) + ",axis=" + std::to_string(axis);
}

/// The lines of a matrix along an axis, as positions in row-major order.
std::vector<std::vector<int64_t>> linesOf(int64_t rows, int64_t columns, int axis) {
  std::vector<std::vector<int64_t>> lines(axis == 0 ? columns : rows);
  for (int64_t i = 0; i < rows * columns; ++i)
    lines[axis == 0 ? i % columns : i / columns].push_back(i);
  return lines;
}

// --- Bits ------------------------------------------------------------------------------------------------------------

void reduceBits(View x, View out, ShapeConfig cfg) {
  Tile tile = load(x, {0, 0}, {cfg.rows, cfg.columns});
  int row = 0;
  for (const Tile &result : {reduce_and(tile, cfg.axis), reduce_or(tile, cfg.axis), reduce_xor(tile, cfg.axis)})
    store(out, {row++, 0}, result);
  store(out, {3, 0}, reduce_xor(tile, everywhere));
}
const Kernel reduceBitsKernel = kernel("reduce_bits", reduceBits, shapeFields);

TEST_P(Kinds, BitsOfIntegersAndTruths) {
  for (const Type type : {boolean, i8, u8, i16, u16, i32, i64, u64})
    for (const auto &[rows, columns] : shapes)
      for (const int axis : {0, 1}) {
        std::mt19937_64 random(static_cast<uint64_t>(rows * 100 + columns));
        Raw raw(rows * columns);
        for (uint64_t &word : raw) // most bits set, so that `and` leaves some
          word = rawOfInteger(type, type == boolean ? random() % 8 > 0 : static_cast<int64_t>(random() | random()));
        const auto lines = linesOf(rows, columns, axis);
        const auto count = static_cast<int64_t>(lines.size());
        const Tensor x = tensor(type, {rows, columns}, raw), out(device, type, {4, count});
        launch(reduceBitsKernel, {x.ref(), out.ref()}, textOf(rows, columns, axis));
        const Raw got = read(out);
        uint64_t total = 0;
        for (int64_t line = 0; line < count; ++line) {
          uint64_t all = ~uint64_t(0), some = 0, odd = 0;
          for (const int64_t i : lines[line]) {
            all &= raw[i];
            some |= raw[i];
            odd ^= raw[i];
          }
          total ^= odd;
          ASSERT_EQ(got[line], all) << nameOf(type) << ", and of line " << line << " along " << axis;
          ASSERT_EQ(got[count + line], some) << nameOf(type) << ", or of line " << line << " along " << axis;
          ASSERT_EQ(got[2 * count + line], odd) << nameOf(type) << ", xor of line " << line << " along " << axis;
        }
        ASSERT_EQ(got[3 * count], total) << nameOf(type) << ", xor of all";
      }
}

// --- Products --------------------------------------------------------------------------------------------------------

void multiplyAll(View x, View out, ShapeConfig cfg) {
  Tile tile = load(x, {0, 0}, {cfg.rows, cfg.columns});
  store(out, {0}, cast(prod(tile, cfg.axis), out.type()));
}
const Kernel multiplyAllKernel = kernel("multiply_all", multiplyAll, shapeFields);

// Integers wrap; small ones are multiplied in i32 or u32, and truths in i32.
TEST_P(Kinds, ProductsOfIntegersWrap) {
  for (const Type type : {boolean, i8, u8, i16, u16, i32, u32, i64, u64})
    for (const auto &[rows, columns] : shapes)
      for (const int axis : {0, 1}) {
        std::mt19937_64 random(static_cast<uint64_t>(rows + columns));
        Raw raw(rows * columns);
        for (uint64_t &word : raw)
          word = rawOfInteger(type, static_cast<int64_t>(random() | 1));
        const auto lines = linesOf(rows, columns, axis);
        const Type total = bytesOf(type) == 8 ? type : isUnsigned(type) ? u32 : i32;
        const Tensor x = tensor(type, {rows, columns}, raw), out(device, total, {static_cast<int64_t>(lines.size())});
        launch(multiplyAllKernel, {x.ref(), out.ref()}, textOf(rows, columns, axis));
        const Raw got = read(out);
        for (size_t line = 0; line < lines.size(); ++line) {
          uint64_t want = 1;
          for (const int64_t i : lines[line])
            want *= static_cast<uint64_t>(integerOf(type, raw[i]));
          ASSERT_EQ(got[line], rawOfInteger(total, static_cast<int64_t>(want)))
              << nameOf(type) << ", line " << line << " along " << axis;
        }
      }
}

// Each of n factors rounds once: n · ε of the product, and a little more for what errors do to each other. Narrow
// floats are multiplied in f32, and rounded once more.
TEST_P(Kinds, ProductsOfFloatsRoundWithEachFactor) {
  for (const Type type : floatTypes)
    for (const auto &[rows, columns] : shapes)
      for (const int axis : {0, 1}) {
        std::mt19937 random(static_cast<int>(rows + columns));
        Raw raw(rows * columns);
        for (uint64_t &word : raw)
          word = rawOfReal(type, (0.9 + static_cast<double>(random() % 200) / 1000) * (random() % 2 ? 1 : -1));
        const auto lines = linesOf(rows, columns, axis);
        const Tensor x = tensor(type, {rows, columns}, raw), out(device, type, {static_cast<int64_t>(lines.size())});
        launch(multiplyAllKernel, {x.ref(), out.ref()}, textOf(rows, columns, axis));
        const Raw got = read(out);
        const double each = type == f64 ? 0x1p-53 : 0x1p-24, last = type == bf16 ? 0x1p-8 : type == f16 ? 0x1p-11 : 0;
        for (size_t line = 0; line < lines.size(); ++line) {
          long double want = 1;
          for (const int64_t i : lines[line])
            want *= realOf(type, raw[i]);
          const double bound = std::abs(static_cast<double>(want)) *
                               (static_cast<double>(lines[line].size()) * each * 1.01 + last * 1.01);
          ASSERT_NEAR(realOf(type, got[line]), static_cast<double>(want), bound)
              << nameOf(type) << ", line " << line << " along " << axis;
        }
      }
}

// --- Places ----------------------------------------------------------------------------------------------------------

void findPlaces(View x, View values, View places, ShapeConfig cfg) {
  Tile tile = load(x, {0, 0}, {cfg.rows, cfg.columns});
  const auto [least, leastAt] = min_at(tile, cfg.axis);
  const auto [most, mostAt] = max_at(tile, cfg.axis);
  store(values, {0, 0}, least);
  store(values, {1, 0}, most);
  store(places, {0, 0}, leastAt);
  store(places, {1, 0}, mostAt);
}
const Kernel findPlacesKernel = kernel("find_places", findPlaces, shapeFields);

// The lowest place of the least and the greatest, NaN behind all numbers either way, −0 the same as +0.
TEST_P(Kinds, PlacesOfTheLeastAndTheGreatest) {
  for (const Type type : everyType)
    for (const auto &[rows, columns] : shapes)
      for (const int axis : {0, 1}) {
        std::mt19937 random(static_cast<int>(rows * 7 + columns));
        const Raw special = type == boolean ? Raw{0, 1} : specialWords(type);
        Raw raw(rows * columns);
        for (uint64_t &word : raw)
          word = special[random() % special.size()];
        const auto lines = linesOf(rows, columns, axis);
        const auto count = static_cast<int64_t>(lines.size());
        const Tensor x = tensor(type, {rows, columns}, raw), values(device, type, {2, count}),
                     places(device, i32, {2, count});
        launch(findPlacesKernel, {x.ref(), values.ref(), places.ref()}, textOf(rows, columns, axis));
        const Raw got = read(places), found = read(values);
        for (int64_t line = 0; line < count; ++line)
          for (const bool greatest : {false, true}) {
            const auto isBetter = [&](uint64_t a, uint64_t b) { // a than b
              if (!isFloat(type))
                return greatest ? wideOf(type, a) > wideOf(type, b) : wideOf(type, a) < wideOf(type, b);
              const double x = realOf(type, a), y = realOf(type, b);
              return std::isnan(y) ? !std::isnan(x) : greatest ? x > y : x < y;
            };
            int64_t best = 0;
            for (size_t i = 1; i < lines[line].size(); ++i)
              if (isBetter(raw[lines[line][i]], raw[lines[line][best]]))
                best = static_cast<int64_t>(i);
            ASSERT_EQ(static_cast<int64_t>(got[greatest * count + line]), best)
                << nameOf(type) << ", line " << line << " along " << axis << ", greatest " << greatest;
            const uint64_t want = computed(type, raw[lines[line][best]]), value = found[greatest * count + line];
            ASSERT_TRUE(isFloat(type) ? same(type, value, want, /*signOfZero=*/false) : value == want)
                << nameOf(type) << ", line " << line << " along " << axis << ", greatest " << greatest;
          }
      }
}

// --- Truths and NaN --------------------------------------------------------------------------------------------------

void askLines(View x, View truths, View extremes, ShapeConfig cfg) {
  Tile tile = load(x, {0, 0}, {cfg.rows, cfg.columns});
  store(truths, {0, 0}, any(isnan(tile), cfg.axis));
  store(truths, {1, 0}, all(isfinite(tile), cfg.axis));
  store(extremes, {0, 0}, reduce_max(tile, cfg.axis, Nans::propagate));
  store(extremes, {1, 0}, reduce_min(tile, cfg.axis, Nans::propagate));
}
const Kernel askLinesKernel = kernel("ask_lines", askLines, shapeFields);

TEST_P(Kinds, AnyAllAndNaNThatPropagates) {
  for (const Type type : floatTypes)
    for (const auto &[rows, columns] : shapes)
      for (const int axis : {0, 1}) {
        std::mt19937 random(static_cast<int>(rows * 3 + columns));
        Raw raw(rows * columns);
        for (uint64_t &word : raw)
          word = rawOfReal(type, random() % 40 == 0   ? NAN
                                 : random() % 20 == 0 ? -INFINITY
                                                      : static_cast<double>(random() % 9) - 4);
        const auto lines = linesOf(rows, columns, axis);
        const auto count = static_cast<int64_t>(lines.size());
        const Tensor x = tensor(type, {rows, columns}, raw), truths(device, boolean, {2, count}),
                     extremes(device, type, {2, count});
        launch(askLinesKernel, {x.ref(), truths.ref(), extremes.ref()}, textOf(rows, columns, axis));
        const Raw got = read(truths), found = read(extremes);
        for (int64_t line = 0; line < count; ++line) {
          bool anyNaN = false, allFinite = true;
          double most = -INFINITY, least = INFINITY;
          for (const int64_t i : lines[line]) {
            const double value = realOf(type, raw[i]);
            anyNaN |= std::isnan(value);
            allFinite &= std::isfinite(value);
            most = std::fmax(most, value);
            least = std::fmin(least, value);
          }
          ASSERT_EQ(got[line], anyNaN) << nameOf(type) << ", line " << line << " along " << axis;
          ASSERT_EQ(got[count + line], allFinite) << nameOf(type) << ", line " << line << " along " << axis;
          ASSERT_TRUE(same(type, found[line], rawOfReal(type, anyNaN ? NAN : most), false)) << nameOf(type) << line;
          ASSERT_TRUE(same(type, found[count + line], rawOfReal(type, anyNaN ? NAN : least), false))
              << nameOf(type) << line;
        }
      }
}

KILN_ON_PROCESSORS(Kinds);

} // namespace
