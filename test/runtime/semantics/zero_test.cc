// Signs of zeros: an addition has the same sign on every machine, for all operands, and so have sums of zeros.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class Zeros : public Semantics {};

constexpr int64_t count = 45, variants = 14;

Raw zerosAndOthers(Type type) {
  const double values[] = {0.0, -0.0, -0.0, 0.0, 1.5, -1.5, INFINITY, -INFINITY, -0.0};
  Raw raw;
  for (int64_t i = 0; i < count; ++i)
    raw.push_back(rawOfReal(type, values[i % 9]));
  return raw;
}

// --- What + 0 makes of zeros -----------------------------------------------------------------------------------------

/// A number for every way to get a zero whose sign is unspecified, or that a compiler may assume to be known.
void addZero(View x, View y) {
  const Tile t = load(x, {0}, {count});
  int64_t row = 0;
  const auto keep = [&](const Tile &tile) { store(y, {row++, 0}, reshape(tile, {1, count})); };
  keep(min(t, 0) + 0);
  keep(max(t, 0) + 0);
  keep(min(t, -0.0) + 0);
  keep(max(t, -0.0) + 0);
  keep(min(abs(t), 0) + 0);
  keep(max(-abs(t), 0) + 0);
  keep(clamp(t, -0.0, 0) + 0);
  keep(clamp(t, 0, 0) + 0);
  keep(min(t, t * 0 + 0) + 0);
  keep(min(max(t, 0), 0) + 0);
  keep(0 + max(min(t, 0), -0.0));
  keep(min(t, 0) - (-0.0));
  keep(min(t, 0) * 0 + 0);
  keep(where(t < 0, t, 0) + 0);
}
const Kernel addZeroKernel = kernel("add_zero", addZero);

// (−0 or +0) + 0 is +0, whichever zero a minimum, a maximum or a product gives.
TEST_P(Zeros, AddingZeroLeavesNoNegativeZero) {
  for (const Type type : floatTypes) {
    const Tensor x = tensor(type, {count}, zerosAndOthers(type)), y(device, type, {variants, count});
    launch(addZeroKernel, {x.ref(), y.ref()});
    const Raw got = read(y);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NE(got[i], rawOfReal(type, -0.0)) << nameOf(type) << ", way " << i / count << ", element " << i % count
                                               << " of " << toDouble(type, read(x)[i % count]);
  }
}

/// The largest and smallest of a row of zeros, + 0; and the infinity by dividing 1 by it.
void addZeroToExtremes(View x, View y) {
  const Tile t = load(x, {0, 0}, {4, 16});
  store(y, {0, 0}, reshape(reduce_max(t) + 0, {1, 4}));
  store(y, {1, 0}, reshape(reduce_min(t) + 0, {1, 4}));
  store(y, {2, 0}, reshape(reduce_min(max(t, 0)) + 0, {1, 4}));
  store(y, {3, 0}, reshape(abs(min(reduce_max(t), 0)), {1, 4}));
}
const Kernel addZeroToExtremesKernel = kernel("add_zero_to_extremes", addZeroToExtremes);

TEST_P(Zeros, ExtremesOfZerosPlusZeroArePositive) {
  for (const Type type : floatTypes) {
    Raw raw;
    for (int64_t i = 0; i < 64; ++i)
      raw.push_back(rawOfReal(type, i * 7 % 5 < 3 ? -0.0 : 0.0));
    const Tensor x = tensor(type, {4, 16}, raw), y(device, type, {4, 4});
    launch(addZeroToExtremesKernel, {x.ref(), y.ref()});
    EXPECT_EQ(read(y), Raw(16, 0)) << nameOf(type);
  }
}

// --- Selection -------------------------------------------------------------------------------------------------------

/// Selects that look like minima and maxima: zeros are equal, so the second value is taken.
void select(View x, View y) {
  const Tile t = load(x, {0}, {count});
  store(y, {0, 0}, reshape(where(t < 0, t, 0), {1, count}));
  store(y, {1, 0}, reshape(where(t > -0.0, t, -0.0), {1, count}));
  store(y, {2, 0}, reshape(where(t > 0, t, 0), {1, count}));
  store(y, {3, 0}, reshape(where(t <= 0, t, 0), {1, count}));
}
const Kernel selectKernel = kernel("select", select);

// `where` selects bits, also where it looks like a minimum or maximum.
TEST_P(Zeros, WhereKeepsTheSignThatItChooses) {
  for (const Type type : floatTypes) {
    const Raw raw = zerosAndOthers(type);
    const Tensor x = tensor(type, {count}, raw), y(device, type, {4, count});
    launch(selectKernel, {x.ref(), y.ref()});
    const Raw got = read(y);
    for (int64_t i = 0; i < count; ++i) {
      const double value = toDouble(type, raw[i]);
      const uint64_t zero = rawOfReal(type, 0.0), negative = rawOfReal(type, -0.0);
      EXPECT_EQ(got[i], value < 0 ? raw[i] : zero) << nameOf(type) << " " << value;
      EXPECT_EQ(got[count + i], value > 0 ? raw[i] : negative) << nameOf(type) << " " << value;
      EXPECT_EQ(got[2 * count + i], value > 0 ? raw[i] : zero) << nameOf(type) << " " << value;
      EXPECT_EQ(got[3 * count + i], value <= 0 ? raw[i] : zero) << nameOf(type) << " " << value;
    }
  }
}

// --- Sums ------------------------------------------------------------------------------------------------------------

struct SumConfig {
  int rows = 1, columns = 1, warps = 4;
};

void sums(View x, View rows, View columns, SumConfig cfg) {
  const Tile t = load(x, {0, 0}, {cfg.rows, cfg.columns});
  store(rows, {0}, sum(t));
  store(columns, {0}, sum(t, 0));
}
const Kernel sumsKernel =
    kernel("sums", sums,
           {field("rows", &SumConfig::rows), field("columns", &SumConfig::columns), field("warps", &SumConfig::warps)});

// −0 is the neutral element of a sum: a sum of −0 alone is −0, with any padding, and one +0 makes it
// +0.
TEST_P(Zeros, SumsOfZerosHaveTheSignOfIeeeAddition) {
  for (const Type type : floatTypes)
    for (const auto &[rows, columns] : {std::pair<int, int>{1, 1}, {3, 5}, {4, 16}, {17, 33}, {5, 100}, {2, 300}})
      for (const int positive : {0, 1}) {
        Raw raw(rows * columns, rawOfReal(type, -0.0));
        if (positive)
          for (int i = 0; i < rows * columns; ++i)
            if (i % columns == columns - 1 || i / columns == rows - 1)
              raw[i] = 0; // the last row and column
        const Tensor x = tensor(type, {rows, columns}, raw), r(device, type, {rows}), c(device, type, {columns});
        for (const int warps : {1, 4}) {
          launch(sumsKernel, {x.ref(), r.ref(), c.ref()}, SumConfig{rows, columns, warps});
          const uint64_t want = rawOfReal(type, positive ? 0.0 : -0.0);
          EXPECT_EQ(read(r), Raw(rows, want)) << nameOf(type) << " " << rows << "x" << columns;
          EXPECT_EQ(read(c), Raw(columns, want)) << nameOf(type) << " " << rows << "x" << columns;
        }
      }
}

KILN_ON_PROCESSORS(Zeros);

} // namespace
