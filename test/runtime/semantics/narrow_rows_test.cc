// Rows of a few elements, such as points (N, 3): CPUs compute vectors of several rows if these are contiguous in
// memory. Values that cost much are kept. folds_test and accesses_test draw other computations of such rows.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class NarrowRows : public Semantics {};

struct RowsConfig {
  int rows = 64, width = 3;
};

/// Expensive values are computed once and stored: powers of two, which are exact, and their sums, and values with one
/// element for each row, of rows and of columns.
void keepMuch(View x, View share, View near, View total, View most, RowsConfig cfg) {
  const Tile a = load(x, {0, 0}, {cfg.rows, cfg.width}), powers = exp2(a * 2 - 1),
             perRow = exp2(reduce_max(a, 1, keep) - 3);
  store(share, {0, 0}, powers * perRow / exp2(sum(a * 0 + 1, 1, keep)));
  store(near, {0, 0}, powers - reduce_max(powers, 1, keep));
  store(total, {0}, sum(powers, 0));
  store(most, {0, 0}, exp2(reduce_max(a, 1, keep)) * 3);
}
const Kernel keepKernel =
    kernel("keep_much", keepMuch, {field("rows", &RowsConfig::rows), field("width", &RowsConfig::width)});

TEST_P(NarrowRows, KeepWhatCostsMuch) {
  int cases = 0;
  for (const int64_t width : {2, 3, 4, 7, 8, 9, 16})
    for (const Type type : {f32, f64})
      for (const int64_t pitch : {width, width + 1}) {
        const int64_t rows = (cases + cases / 2) % 2 ? 200 : 33;
        ++cases;
        SCOPED_TRACE(nameOf(type) + std::string(" ") + std::to_string(rows) + " x " + std::to_string(width) +
                     " pitch " + std::to_string(pitch));
        const auto at = [](int64_t r, int64_t c) { return static_cast<double>((r * 7 + c * 3) % 5); };
        Raw raw;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < pitch; ++c)
            raw.push_back(rawOfReal(type, c < width ? at(r, c) : 100));
        const Tensor x = tensor(type, {rows, pitch}, raw), share(device, type, {rows, width}),
                     near(device, type, {rows, width}), total(device, type, {width}), most(device, type, {rows, 1});
        launch(keepKernel, {x.ref().slice(1, 0, width), share.ref(), near.ref(), total.ref(), most.ref()},
               RowsConfig{static_cast<int>(rows), static_cast<int>(width)});
        const Raw shares = read(share), nears = read(near), totals = read(total), mosts = read(most);
        std::vector<double> sums(width);
        for (int64_t r = 0; r < rows; ++r) {
          double largest = 0;
          for (int64_t c = 0; c < width; ++c)
            largest = std::max(largest, at(r, c));
          for (int64_t c = 0; c < width; ++c) {
            const double power = std::exp2(at(r, c) * 2 - 1);
            sums[c] += power;
            ASSERT_EQ(shares[r * width + c], rawOfReal(type, power * std::exp2(largest - 3 - width))) << r << ", " << c;
            ASSERT_EQ(nears[r * width + c], rawOfReal(type, power - std::exp2(largest * 2 - 1))) << r << ", " << c;
          }
          ASSERT_EQ(mosts[r], rawOfReal(type, std::exp2(largest) * 3)) << r;
        }
        for (int64_t c = 0; c < width; ++c)
          ASSERT_EQ(totals[c], rawOfReal(type, sums[c])) << c;
      }
}

KILN_ON_PROCESSORS(NarrowRows);

} // namespace
