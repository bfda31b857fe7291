// The order of a sum of floats depends on the tile's extents and the target alone: not on the tile's address, the
// distance of the view's rows, or whether the tile extends past the view.

#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <random>

using namespace kiln;
using namespace kiln::test;

namespace {

struct OrderConfig {
  int rows = 64, width = 3;
};
const std::vector<Field> orderFields = {field("rows", &OrderConfig::rows), field("width", &OrderConfig::width)};

/// Sums and products of the rows and columns of a tile of x at `first`, of arithmetic on it, and of all elements.
void reduceAll(View x, View rows, View columns, View factors, View all, Tile first, OrderConfig cfg) {
  const Tile a = load(x, {first, 0}, {cfg.rows, cfg.width});
  store(rows, {0}, sum(a, 1));
  store(columns, {0}, sum(a, 0));
  store(factors, {0}, prod(a * 0.25 + 1.0, 1));
  store(all, {0}, sum(a * 3.0, everywhere));
}
const Kernel reduceKernel = kernel("reduce_all", reduceAll, orderFields);

class SumOrder : public Semantics {
protected:
  /// The position of a tile in memory: `before` rows from the first, rows of `pitch` elements, and the view's `height`
  /// and `width`.
  struct Place {
    int64_t before, pitch, height, width;
  };

  /// The results for the numbers (rows × width); those outside the view are 0, with `stray` everywhere else.
  std::vector<Raw> resultsAt(const Place &place, Type type, int64_t rows, int64_t width, const Raw &numbers) {
    const int64_t height = place.before + std::max(rows, place.height);
    Raw memory(height * place.pitch, rawOfReal(type, 77));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < std::min(width, place.pitch); ++c)
        memory[(place.before + r) * place.pitch + c] = numbers[r * width + c];
    const Tensor x = tensor(type, {height, place.pitch}, memory), sums(device, type, {rows}),
                 columns(device, type, {width}), factors(device, type, {rows}), all(device, type, {1});
    TensorRef view = x.ref();
    view.extents = {place.before + place.height, place.width};
    launch(reduceKernel, {view, sums.ref(), columns.ref(), factors.ref(), all.ref(), static_cast<int>(place.before)},
           OrderConfig{static_cast<int>(rows), static_cast<int>(width)});
    return {read(sums), read(columns), read(factors), read(all)};
  }
};

// Numbers whose sum depends on the order: 1e8, 1, -1e8 and the like, at every position of such a tile.
TEST_P(SumOrder, DoesNotDependOnTheTilesPlace) {
  if (!GetParam().starts_with("cpu"))
    GTEST_SKIP() << "a GPU's threads divide a tile by what is known of its view";
  std::mt19937 engine(1);
  for (const Type type : {f32, bf16, f16, f64})
    for (const int64_t width : {2, 3, 4, 5, 7, 8, 12, 16, 24, 40, 130})
      for (const int64_t rows : {1, 6, 33, 128}) {
        const double large = type == f16 ? 4e4 : 1e8;
        Raw numbers; // the last row and the last column are 0, so that a view may end before them
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < width; ++c) {
            const double some[] = {large, 1, -large, 0.3, -2.5};
            const bool isLast = (c == width - 1 && width > 2) || (r == rows - 1 && rows > 1);
            numbers.push_back(rawOfReal(type, isLast ? 0 : some[engine() % 5]));
          }
        std::vector<Place> places = {{0, width + 1, rows, width},
                                     {0, width + 13, rows, width},
                                     {3, width, rows + 5, width},
                                     {1, width + 2, rows, width}};
        if (rows > 1) {
          places.push_back({0, width, rows - 1, width});
          places.push_back({2, width + 4, rows - 1, width});
        }
        if (width > 2) {
          places.push_back({0, width - 1, rows, width - 1});
          places.push_back({0, width, rows, width - 1});
        }
        const std::vector<Raw> want = resultsAt({0, width, rows, width}, type, rows, width, numbers);
        for (const Place &place : places) {
          const std::vector<Raw> got = resultsAt(place, type, rows, width, numbers);
          for (size_t i = 0; i < want.size(); ++i)
            EXPECT_EQ(got[i], want[i]) << nameOf(type) << ", " << rows << " x " << width << ": result " << i
                                       << " of rows " << place.pitch << " apart from row " << place.before
                                       << " on in a view of " << place.height << " x " << place.width;
        }
      }
}

/// Sums of the rows of a tile, and of all its columns, from the view's begin on.
void sumFromBegin(View x, View rows, View columns, ExtentConfig cfg) {
  constexpr int height = 9;
  Tile tile = load(x, {0, 0}, {height, cfg.extent});
  store(rows, {0}, sum(tile, 1));
  store(columns, {0}, sum(tile, 0));
}
const Kernel sumFromBeginKernel = kernel("sum_from_begin", sumFromBegin, extentField());

// The order of a sum depends on the tile's extents alone. A tile that extends past its view has the bits of one that is
// inside and holds zeros there, for any number of missing vectors. On a GPU the layout also depends on the view's
// facts: there only whole vectors are missing.
TEST_P(SumOrder, SumsThatHangOverAddInTheSameOrder) {
  const bool anyEnd = std::holds_alternative<CpuFacts>(device->target().facts);
  constexpr int64_t tall = 9;
  for (const int64_t width : {64, 80, 288, 300})
    for (const int64_t missing : {1, 15, 16, 32, 40})
      for (const int64_t height : {tall, tall - 2}) {
        if (missing % 16 != 0 && !anyEnd)
          continue;
        Raw found[2][2];
        for (const bool over : {false, true}) {
          std::mt19937 random(7);
          Raw words(tall * width, over ? rawOfReal(f32, 1) : 0); // ones lie behind the view
          for (int64_t row = 0; row < height; ++row)
            for (int64_t column = 0; column < width - missing; ++column)
              words[row * width + column] = rawOfReal(f32, std::ldexp(random(), -31) - 1);
          const Tensor x = tensor(f32, {tall, width}, words), rows(device, f32, {tall}), columns(device, f32, {width});
          const TensorRef part = x.ref().slice(0, 0, height).slice(1, 0, width - missing);
          launch(sumFromBeginKernel, {over ? part : x.ref(), rows.ref(), columns.ref()}, extentText(width));
          found[over][0] = read(rows);
          found[over][1] = read(columns);
        }
        EXPECT_EQ(found[0][0], found[1][0]) << "rows of " << height << " x " << width - missing;
        EXPECT_EQ(found[0][1], found[1][1]) << "columns of " << height << " x " << width - missing;
      }
}

KILN_ON_PROCESSORS(SumOrder);

// --- Rows of a few elements ------------------------------------------------------------------------------------------

// Rows of a few elements, such as points (N, 3): CPUs compute vectors of several rows if these are contiguous in
// memory. Values that cost much are kept. folds_test and accesses_test draw other computations of such rows.

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
