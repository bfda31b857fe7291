// Mean and population variance against double precision, along rows, columns and both.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

struct MomentsConfig {
  int rows = 1, columns = 1;
};

/// means and vars hold a number for each row, then for each column, then one for all elements.
void moments(View x, View means, View vars, MomentsConfig cfg) {
  const int R = cfg.rows, C = cfg.columns;
  Tile a = load(x, {0, 0}, {R, C}); // (R, C)
  store(means, {0}, squeeze(mean(a, -1, keep), -1));
  store(means, {R}, mean(a, 0));
  store(means, {R + C}, mean(a, everywhere));
  store(vars, {0}, var(a));
  store(vars, {R}, squeeze(var(a, 0, keep), 0));
  store(vars, {R + C}, var(a, {0, 1}));
}
const Kernel momentsKernel =
    kernel("moments", moments, {field("rows", &MomentsConfig::rows), field("columns", &MomentsConfig::columns)});

class Moments : public Semantics {};

// The numbers are far from 0 compared with their spread: E[x²] − E[x]² would lose the variance in f32.
TEST_P(Moments, AreThoseOfDoublePrecision) {
  std::mt19937 random(5);
  for (const Type type : floatTypes)
    for (const auto &[rows, columns] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {17, 64}, {4, 768}}) {
      Raw raw;
      for (int64_t i = 0; i < rows * columns; ++i)
        raw.push_back(rawOfReal(type, 1000 + static_cast<double>(random() % 2001) / 250));
      const int64_t count = rows + columns + 1;
      const Tensor x = tensor(type, {rows, columns}, raw), means(device, type, {count}), vars(device, type, {count});
      launch(momentsKernel, {x.ref(), means.ref(), vars.ref()},
             MomentsConfig{static_cast<int>(rows), static_cast<int>(columns)});
      const Raw gotMeans = read(means), gotVars = read(vars);
      for (int64_t i = 0; i < count; ++i) {
        std::vector<double> numbers;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < columns; ++c)
            if (i < rows ? r == i : i == count - 1 || c == i - rows)
              numbers.push_back(toDouble(type, raw[r * columns + c]));
        const auto n = static_cast<double>(numbers.size());
        double total = 0, squares = 0;
        for (const double number : numbers)
          total += number;
        for (const double number : numbers)
          squares += (number - total / n) * (number - total / n);
        // The relative error of a sum of n terms is n · ε, that of the division ε, and the result is rounded to its own
        // type. If the mean has the error d, the squared differences sum to n · d² more, and each has the error 3 ε.
        const double epsilon = type == f64 ? 0x1p-53 : 0x1p-24;
        const double rounding = type == bf16 ? 0x1p-8 : type == f16 ? 0x1p-11 : epsilon;
        const double want = total / n, off = (n + 1) * epsilon * want, variance = squares / n;
        ASSERT_NEAR(toDouble(type, gotMeans[i]), want, off + rounding * want)
            << nameOf(type) << " " << rows << "x" << columns << ": mean " << i;
        ASSERT_NEAR(toDouble(type, gotVars[i]), variance,
                    ((n + 4) * epsilon + rounding) * variance + 1.01 * off * off + 0x1p-24 * (type == f16))
            << nameOf(type) << " " << rows << "x" << columns << ": variance " << i;
      }
    }
}

KILN_ON_PROCESSORS(Moments);

} // namespace
