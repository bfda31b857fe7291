// Rows of a few elements, such as points (N, 3): CPUs compute vectors of several rows if these are contiguous in
// memory. Widths below, equal to and above a vector; types in turn; and views whose rows are contiguous, have gaps, or
// end within the tile.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class NarrowRows : public Semantics {};

struct RowsConfig {
  int planes = 1, rows = 64, width = 3;
};
const std::vector<Field> rowsFields = {field("planes", &RowsConfig::planes), field("rows", &RowsConfig::rows),
                                       field("width", &RowsConfig::width)};

/// x + 1; x with a number of each row, of each column, and of where it is; x twice.
void eachElement(View x, View column, View row, View plain, View mixed, View twice, RowsConfig cfg) {
  const Tile a = load(x, {0, 0, 0}, {cfg.planes, cfg.rows, cfg.width});
  store(plain, {0, 0, 0}, a + 1);
  const Tile of = reshape(load(column, {0, 0}, {cfg.rows, 1}), {1, cfg.rows, 1}),
             by = reshape(load(row, {0}, {cfg.width}), {1, 1, cfg.width});
  store(mixed, {0, 0, 0}, a * 2 + of - by + cast(reshape(iota(cfg.width), {1, 1, cfg.width}), x.type()));
  store(twice, {0, 0, 0, 0}, unsqueeze(a * 3, 0));
}
const Kernel eachKernel = kernel("each_element", eachElement, rowsFields);

/// Reductions of each row and of cheap arithmetic on it, and the differences of its elements from the largest.
void eachRow(View x, View total, View most, View least, View place, View below, RowsConfig cfg) {
  const Tile a = load(x, {0, 0, 0}, {cfg.planes, cfg.rows, cfg.width}) * 2 - 1;
  store(total, {0, 0}, sum(a, 2));
  store(most, {0, 0}, reduce_max(a, 2));
  store(least, {0, 0}, reduce_min(a, 2));
  store(place, {0, 0}, argmax(a, 2));
  store(below, {0, 0, 0}, reduce_max(a, 2, keep) - a);
}
const Kernel rowKernel = kernel("each_row", eachRow, rowsFields);

/// Those of each column, except the position of the largest, with which no contiguous rows would be computed.
void eachColumn(View x, View total, View most, View least, View, View below, RowsConfig cfg) {
  const Tile a = load(x, {0, 0, 0}, {cfg.planes, cfg.rows, cfg.width}) * 2 - 1;
  store(total, {0, 0}, sum(a, 1));
  store(most, {0, 0}, reduce_max(a, 1));
  store(least, {0, 0}, reduce_min(a, 1));
  store(below, {0, 0, 0}, reduce_max(a, 1, keep) - a);
}
const Kernel columnKernel = kernel("each_column", eachColumn, rowsFields);

/// A problem: the tile's extents, and those of the memory that its view is of.
struct Problem {
  Type type;
  int64_t planes, rows, width, height, pitch; // of memory: rows of a plane, elements of a row
  int64_t heightOfView, widthOfView;
  std::string config() const {
    return "planes=" + std::to_string(planes) + ",rows=" + std::to_string(rows) + ",width=" + std::to_string(width);
  }
  uint64_t word(int64_t value) const {
    return isFloat(type) ? rawOfReal(type, static_cast<double>(value)) : rawOfInteger(type, value);
  }
  static int64_t inMemory(int64_t p, int64_t r, int64_t c) { return (p * 5 + r * 7 + c * 3) % 23 - 9; }
  int64_t number(int64_t p, int64_t r, int64_t c) const { // 0 outside
    return r < heightOfView && c < widthOfView ? inMemory(p, r, c) : 0;
  }
};

std::vector<Problem> problems() {
  const Type types[] = {f32, i32, bf16, i8, f64, f16, i16, i64};
  std::vector<Problem> all;
  size_t next = 0;
  for (const int64_t width : {2, 3, 5, 8, 12, 40})
    for (const int kind : {0, 1, 2, 3}) { // rows follow each other, lie apart, end, or are too short
      const auto [planes, rows] =
          (next / 2 + next / 4) % 2 ? std::pair<int64_t, int64_t>{1, 200} : std::pair<int64_t, int64_t>{2, 33};
      const Type type = types[(next + next / 4) % std::size(types)];
      ++next;
      all.push_back({type, planes, rows, width, rows + 1, kind == 1 ? width + 2 : width, kind == 2 ? rows - 3 : rows,
                     kind == 3 ? width - 1 : width});
    }
  return all;
}

TEST_P(NarrowRows, AreComputedElementByElement) {
  for (const Problem &p : problems()) {
    SCOPED_TRACE(nameOf(p.type) + std::string(" ") + p.config() + " pitch " + std::to_string(p.pitch) + " view " +
                 std::to_string(p.heightOfView) + " x " + std::to_string(p.widthOfView));
    const auto memory = [&](const Problem &p) {
      Raw raw;
      for (int64_t plane = 0; plane < p.planes; ++plane)
        for (int64_t r = 0; r < p.height; ++r)
          for (int64_t c = 0; c < p.pitch; ++c)
            raw.push_back(p.word(Problem::inMemory(plane, r, c)));
      return tensor(p.type, {p.planes, p.height, p.pitch}, raw);
    };
    const auto viewOf = [&](const Tensor &whole) {
      TensorRef view = whole.ref();
      view.extents = {p.planes, p.heightOfView, p.widthOfView};
      return view;
    };
    Raw columns, row;
    for (int64_t r = 0; r < p.rows; ++r)
      columns.push_back(p.word(r % 4));
    for (int64_t c = 0; c < p.width; ++c)
      row.push_back(p.word(c % 3));
    const Tensor x = memory(p), column = tensor(p.type, {p.rows, 1}, columns), by = tensor(p.type, {p.width}, row),
                 plain = memory(p), mixed(device, p.type, {p.planes, p.rows, p.width}),
                 twice(device, p.type, {1, p.planes, p.rows, p.width});
    launch(eachKernel, {viewOf(x), column.ref(), by.ref(), viewOf(plain), mixed.ref(), twice.ref()}, p.config());
    const Raw ones = read(plain), mixes = read(mixed), threes = read(twice);
    for (int64_t plane = 0; plane < p.planes; ++plane)
      for (int64_t r = 0; r < p.rows; ++r)
        for (int64_t c = 0; c < p.width; ++c) {
          const int64_t a = p.number(plane, r, c), at = (plane * p.rows + r) * p.width + c;
          ASSERT_EQ(mixes[at], p.word(a * 2 + r % 4 - c % 3 + c)) << plane << ", " << r << ", " << c;
          ASSERT_EQ(threes[at], p.word(a * 3)) << plane << ", " << r << ", " << c;
        }
    for (int64_t plane = 0; plane < p.planes; ++plane) // and nothing beside the view is written
      for (int64_t r = 0; r < p.height; ++r)
        for (int64_t c = 0; c < p.pitch; ++c) {
          const bool isInView = r < p.heightOfView && c < p.widthOfView;
          ASSERT_EQ(ones[(plane * p.height + r) * p.pitch + c],
                    p.word(Problem::inMemory(plane, r, c) + (isInView ? 1 : 0)))
              << plane << ", " << r << ", " << c;
        }
  }
}

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
const Kernel keepKernel = kernel("keep_much", keepMuch, rowsFields);

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
               "rows=" + std::to_string(rows) + ",width=" + std::to_string(width));
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

class NarrowReductions : public NarrowRows {
protected:
  /// For the rows or the columns of all problems.
  void expectReduced(const Kernel &kernel, bool columns) {
    for (const Problem &p : problems()) {
      if (p.type == i8 || p.type == i16)
        continue; // are summed in another type
      SCOPED_TRACE(nameOf(p.type) + std::string(" ") + p.config() + " pitch " + std::to_string(p.pitch) + " view " +
                   std::to_string(p.heightOfView) + " x " + std::to_string(p.widthOfView));
      Raw raw;
      for (int64_t plane = 0; plane < p.planes; ++plane)
        for (int64_t r = 0; r < p.height; ++r)
          for (int64_t c = 0; c < p.pitch; ++c)
            raw.push_back(p.word(Problem::inMemory(plane, r, c)));
      const int64_t kept = columns ? p.width : p.rows, along = columns ? p.rows : p.width;
      const Tensor x = tensor(p.type, {p.planes, p.height, p.pitch}, raw), total(device, p.type, {p.planes, kept}),
                   most(device, p.type, {p.planes, kept}), least(device, p.type, {p.planes, kept}),
                   place(device, i32, {p.planes, kept}), below(device, p.type, {p.planes, p.rows, p.width});
      TensorRef view = x.ref();
      view.extents = {p.planes, p.heightOfView, p.widthOfView};
      launch(kernel, {view, total.ref(), most.ref(), least.ref(), place.ref(), below.ref()}, p.config());
      const Raw totals = read(total), largest = read(most), smallest = read(least), places = read(place),
                differences = read(below);
      for (int64_t plane = 0; plane < p.planes; ++plane)
        for (int64_t k = 0; k < kept; ++k) {
          const auto number = [&](int64_t i) { // of its elements
            return (columns ? p.number(plane, i, k) : p.number(plane, k, i)) * 2 - 1;
          };
          int64_t sum = 0, max = INT64_MIN, min = INT64_MAX, best = 0;
          for (int64_t i = 0; i < along; ++i) {
            sum += number(i);
            best = number(i) > max ? i : best;
            max = std::max(max, number(i));
            min = std::min(min, number(i));
          }
          const int64_t at = plane * kept + k;
          ASSERT_EQ(totals[at], p.word(sum)) << plane << ", " << k;
          ASSERT_EQ(largest[at], p.word(max)) << plane << ", " << k;
          ASSERT_EQ(smallest[at], p.word(min)) << plane << ", " << k;
          ASSERT_EQ(columns ? 0 : places[at], columns ? 0 : rawOfInteger(i32, best)) << plane << ", " << k;
          for (int64_t i = 0; i < along; ++i)
            ASSERT_EQ(differences[plane * kept * along + (columns ? i * kept + k : k * along + i)],
                      p.word(max - number(i)))
                << plane << ", " << k << ", " << i;
        }
    }
  }
};

TEST_P(NarrowReductions, OfRows) { expectReduced(rowKernel, false); }
TEST_P(NarrowReductions, OfColumns) { expectReduced(columnKernel, true); }

KILN_ON_PROCESSORS(NarrowRows);
KILN_ON_PROCESSORS(NarrowReductions);

} // namespace
