// Elements taken by their positions, along every axis and of every type, and elements counted by their values.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Lookups : public Semantics {};

struct PlaneConfig {
  int rows = 1, columns = 1, more = 1, axis = 0; // `more` positions along the axis
  bool one = false;                              // the other extent of the positions is 1
  int warps = 4;
};

void takeAlong(View x, View index, View out, PlaneConfig cfg) {
  Shape shape{cfg.rows, cfg.columns}, places = shape;
  places[cfg.axis] = cfg.more;
  if (cfg.one)
    places[1 - cfg.axis] = 1;
  const Tile a = load(x, {0, 0}, shape), at = load(index, {0, 0}, places);
  store(out, {0, 0}, gather(a, at, cfg.axis));
  places[1 - cfg.axis] = shape[1 - cfg.axis];
  store(out, {places[0], 0}, gather(cast(a, out.type()), at, cfg.axis - 2)); // as the caller counts axes
}
const Kernel takeKernel = kernel("take_along", takeAlong,
                                 {field("rows", &PlaneConfig::rows), field("columns", &PlaneConfig::columns),
                                  field("more", &PlaneConfig::more), field("axis", &PlaneConfig::axis),
                                  field("one", &PlaneConfig::one), field("warps", &PlaneConfig::warps)});

// A position outside gives 0, for any position.
TEST_P(Lookups, AlongEveryAxisOfEveryType) {
  const int shapes[][3] = {{1, 1, 1}, {1, 64, 17}, {5, 33, 40}, {3, 7, 128}, {16, 16, 3}, {2, 300, 100}};
  int cases = 0;
  for (const auto &[rows, columns, more] : shapes)
    for (const int axis : {0, 1}) {
      const Type type = everyType[cases % std::size(everyType)], number = cases % 2 ? i32 : i64;
      const PlaneConfig cfg{rows, columns, more, axis, cases % 3 == 0, 1 << cases % 4};
      const int64_t extent = axis ? columns : rows;
      const int64_t toRows = axis ? rows : more, toColumns = axis ? more : columns;
      const int64_t indexRows = axis && cfg.one ? 1 : toRows, indexColumns = !axis && cfg.one ? 1 : toColumns;
      const Raw elements = words(type, int64_t{1} * rows * columns, 7, ++cases);
      const int64_t odd[] = {-1, extent, INT32_MIN, INT32_MAX};
      std::vector<int64_t> positions;
      Raw places;
      for (int64_t i = 0; i < indexRows * indexColumns; ++i) {
        positions.push_back(i % 5 == 3 ? odd[i % 4] : i * 13 % extent);
        if (number == i64 && i % 7 == 6)
          positions.back() += int64_t{1} << 32; // whose low half would be inside
        places.push_back(rawOfInteger(number, positions.back()));
      }
      const Tensor x = tensor(type, {rows, columns}, elements),
                   index = tensor(number, {indexRows, indexColumns}, places),
                   out(device, type, {2 * toRows, toColumns});
      launch(takeKernel, {x.ref(), index.ref(), out.ref()}, cfg);
      const Raw got = read(out);
      for (int64_t row = 0; row < toRows; ++row)
        for (int64_t column = 0; column < toColumns; ++column) {
          const int64_t at = positions[(indexRows == 1 ? 0 : row) * indexColumns + (indexColumns == 1 ? 0 : column)];
          const bool within = at >= 0 && at < extent;
          const uint64_t want = !within ? 0 : elements[axis ? row * columns + at : at * columns + column];
          for (const int64_t half : {int64_t{0}, toRows})
            ASSERT_TRUE(isFloat(type) ? same(type, got[(half + row) * toColumns + column], want)
                                      : got[(half + row) * toColumns + column] == want)
                << nameOf(type) << ", " << textOf(takeKernel.fields, cfg) << ", " << row << ", " << column;
        }
    }
}

struct CountConfig {
  int rows = 1, columns = 1, bins = 1, warps = 4;
};
void countAll(View x, View mask, View out, CountConfig cfg) {
  const Tile a = load(x, {0, 0}, {cfg.rows, cfg.columns}), m = load(mask, {0, 0}, {cfg.rows, cfg.columns});
  store(out, {0, 0}, histogram(a, cfg.bins));
  store(out, {1, 0}, histogram(a, cfg.bins, m));
  store(out, {2, 0}, histogram(reshape(a, {cfg.rows * cfg.columns}), cfg.bins, false));
}
const Kernel countKernel = kernel("count_all", countAll,
                                  {field("rows", &CountConfig::rows), field("columns", &CountConfig::columns),
                                   field("bins", &CountConfig::bins), field("warps", &CountConfig::warps)});

// Values outside and masked-off ones are not counted; many equal ones are.
TEST_P(Lookups, HistogramsOfEveryInteger) {
  const int shapes[][3] = {{1, 1, 1}, {1, 100, 64}, {7, 33, 5}, {3, 1000, 300}, {64, 16, 2}};
  int cases = 0;
  for (const auto &[rows, columns, bins] : shapes)
    for (const Type type : integerTypes) {
      const CountConfig cfg{rows, columns, bins, 1 << cases++ % 4};
      const int64_t count = int64_t{1} * rows * columns;
      Raw elements, mask, want(3 * bins);
      for (int64_t i = 0; i < count; ++i) {
        int64_t n = i % 3 == 0 ? 1 : i * i % (bins + 9) - 4;
        if (type == i64 && i % 50 == 49)
          n += int64_t{1} << 40; // whose low half would be counted
        elements.push_back(rawOfInteger(type, n));
        mask.push_back(i * 7 % 3 != 0);
        const int64_t is = integerOf(type, elements.back());
        if (is >= 0 && is < bins) {
          ++want[is];
          want[bins + is] += mask.back();
        }
      }
      const Tensor x = tensor(type, {rows, columns}, elements), m = tensor(boolean, {rows, columns}, mask),
                   out(device, i32, {3, bins});
      launch(countKernel, {x.ref(), m.ref(), out.ref()}, cfg);
      EXPECT_EQ(read(out), want) << nameOf(type) << " " << rows << "x" << columns << ", " << bins << " bins";
    }
}

KILN_ON_PROCESSORS(Lookups);

} // namespace
