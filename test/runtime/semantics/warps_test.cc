// How many warps a program has changes no element: what moves between threads arrives wherever the layouts put it.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Warps : public Semantics {};

struct TurnConfig {
  int rows = 1, columns = 1, warps = 4;
};

/// y = xᵀ as it is loaded, z = (x + x)ᵀ and n = (x ≠ 0)ᵀ.
void turn(View x, View y, View z, View n, TurnConfig cfg) {
  const Tile a = load(x, {0, 0}, {cfg.rows, cfg.columns});
  store(y, {0, 0}, transpose(a, {1, 0}));
  store(z, {0, 0}, transpose(a + a, {1, 0}));
  store(n, {0, 0}, transpose(a != 0, {1, 0}));
}
const Kernel turnKernel = kernel(
    "turn", turn,
    {field("rows", &TurnConfig::rows), field("columns", &TurnConfig::columns), field("warps", &TurnConfig::warps)});

Raw transposed(const Raw &raw, int64_t rows, int64_t columns) {
  Raw result;
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t row = 0; row < rows; ++row)
      result.push_back(raw[static_cast<size_t>(row * columns + column)]);
  return result;
}

TEST_P(Warps, TransposesOfEveryTypeAndNumberOfWarps) {
  for (const Type type : {bf16, f16, f32, f64, i8, i32, i64})
    for (const auto &[rows, columns] : {std::pair<int, int>{16, 64}, {5, 48}, {64, 3}}) {
      Raw raw, doubled, truth;
      for (int64_t i = 0; i < rows * columns; ++i) { // whole numbers that i8 and bf16 hold, and hold twice
        const int64_t number = i * 7 % 127 - 63;
        const auto word = [&](int64_t value) {
          return isFloat(type) ? rawOfReal(type, static_cast<double>(value)) : rawOfInteger(type, value);
        };
        raw.push_back(word(number));
        doubled.push_back(word(2 * number));
        truth.push_back(number != 0);
      }
      const Tensor x = tensor(type, {rows, columns}, raw);
      for (const int warps : {1, 2, 4, 8, 16}) {
        SCOPED_TRACE(nameOf(type) + std::string(" ") + std::to_string(rows) + "x" + std::to_string(columns) + " with " +
                     std::to_string(warps) + " warps");
        Tensor y(device, type, {columns, rows}), z(device, type, {columns, rows}), n(device, boolean, {columns, rows});
        launch(turnKernel, {x, y, z, n},
               "rows=" + std::to_string(rows) + ",columns=" + std::to_string(columns) +
                   ",warps=" + std::to_string(warps));
        EXPECT_EQ(read(y), transposed(raw, rows, columns));
        EXPECT_EQ(read(z), transposed(doubled, rows, columns));
        EXPECT_EQ(read(n), transposed(truth, rows, columns));
      }
    }
}

KILN_ON_DEVICES(Warps);

} // namespace
