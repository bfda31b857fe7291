// Subscripts that are tiles, in every position and of every rank, and masks: the selected elements are read and
// written, and no others.

#include "test/runtime/semantics/guarded_page.h"
#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <numeric>

using namespace kiln;
using namespace kiln::test;

namespace {

class Addressing : public Semantics {
protected:
  double number(Type type, uint64_t raw) {
    return isFloat(type) ? realOf(type, raw) : static_cast<double>(integerOf(type, raw));
  }
  Tensor indices(Type type, Shape extents, const std::vector<int64_t> &numbers) {
    Raw raw;
    for (const int64_t number : numbers)
      raw.push_back(rawOfInteger(type, number));
    return tensor(type, std::move(extents), raw);
  }
  /// Numbers from −2 to `most` + 1, some of them more than once.
  std::vector<int64_t> anyNumbers(int64_t count, int64_t most, int seed) {
    std::mt19937 random(seed);
    std::vector<int64_t> numbers(count);
    for (int64_t &number : numbers)
      number = static_cast<int64_t>(random() % (most + 4)) - 2;
    return numbers;
  }
};

struct IndexConfig {
  int a = 7, b = 1, c = 1; // extents of the tile of positions
  int padding = 0;
};
const std::vector<Field> indexFields = {field("a", &IndexConfig::a), field("b", &IndexConfig::b),
                                        field("c", &IndexConfig::c), field("padding", &IndexConfig::padding)};
Shape shapeOf(const IndexConfig &cfg) {
  Shape shape{cfg.a};
  if (cfg.b > 1 || cfg.c > 1)
    shape.push_back(cfg.b);
  if (cfg.c > 1)
    shape.push_back(cfg.c);
  return shape;
}
std::string textOf(const Shape &shape) {
  std::string text;
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::string(1, static_cast<char>('a' + i)) + "=" + std::to_string(shape[i]);
  return text;
}
const Shape indexShapes[] = {{1}, {7}, {64}, {5, 3}, {4, 33}, {2, 3, 4}};
int64_t countOf(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// --- A table, by one tile of positions -------------------------------------------------------------------------------

/// Both directions: a gather and a scatter.
void lookUp(View table, View ids, View out, View back, IndexConfig cfg) {
  const Shape shape = shapeOf(cfg);
  const int64_t count = cfg.a * cfg.b * cfg.c;
  Tile id = reshape(load(ids, {0}, {count}), shape);
  store(out, {0}, reshape(load(table, {id}, {}, static_cast<Padding>(cfg.padding)), {count}));
  store(back, {id}, cast(id, back.type()));
}
const Kernel lookUpKernel = kernel("look_up", lookUp, indexFields);

TEST_P(Addressing, ATableIsReadAndWrittenByATileOfAnyRank) {
  const int64_t size = 50;
  const std::pair<Type, Type> types[] = {{f32, i32}, {f32, i64}, {f32, i8}, {i8, i32}, {bf16, i64}, {f64, i32}};
  for (const auto &[type, indexType] : types)
    for (const Shape &shape : indexShapes)
      for (const int64_t stride : {1, 3}) {
        const int64_t count = countOf(shape);
        const auto at = anyNumbers(count, size - 1, static_cast<int>(count + stride));
        const Tensor whole = counting(type, {size * stride}, 1), backing = counting(type, {size * stride}, -60);
        TensorRef table = whole.ref(), back = backing.ref();
        table.extents = back.extents = {size};
        table.strides = back.strides = {stride};
        const Tensor ids = indices(indexType, {count}, at), out(device, type, {count});
        const Raw before = read(backing);
        launch(lookUpKernel, {table, ids.ref(), out.ref(), back}, textOf(shape));
        const Raw source = read(whole), got = read(out), written = read(backing);
        std::vector<bool> named(size * stride, false);
        for (int64_t i = 0; i < count; ++i) {
          const bool inside = at[i] >= 0 && at[i] < size;
          ASSERT_EQ(got[i], inside ? source[at[i] * stride] : 0)
              << nameOf(type) << " by " << nameOf(indexType) << ", " << kiln::textOf(shape) << ", element " << i;
          if (inside)
            named[at[i] * stride] = true;
        }
        for (int64_t i = 0; i < size * stride; ++i)
          ASSERT_EQ(number(type, written[i]), named[i] ? i / stride : number(type, before[i]))
              << nameOf(type) << " by " << nameOf(indexType) << ", " << kiln::textOf(shape) << ", place " << i;
      }
}

TEST_P(Addressing, APositionOutsideReadsThePadding) {
  const double paddings[] = {0, -0., INFINITY, -INFINITY, NAN};
  const std::vector<int64_t> at{-1, 0, 4, 5, INT64_MAX, INT64_MIN, int64_t(1) << 32, 2};
  const Tensor table = counting(f32, {5}, 1), ids = indices(i64, {8}, at), back(device, f32, {5});
  for (int padding = 0; padding < 5; ++padding) {
    const Tensor out(device, f32, {8});
    launch(lookUpKernel, {table.ref(), ids.ref(), out.ref(), back.ref()}, "a=8,padding=" + std::to_string(padding));
    const Raw got = read(out);
    for (int i = 0; i < 8; ++i) {
      const double want = at[i] >= 0 && at[i] < 5 ? static_cast<double>(at[i] + 1) : paddings[padding];
      EXPECT_TRUE(same(f32, got[i], rawOfReal(f32, want))) << "padding " << padding << ", element " << i;
    }
  }
}

// --- Numbers and tiles among the subscripts
// ---------------------------------------------------------------------------

constexpr int64_t extentsOf3[] = {6, 9, 20};

struct FormConfig {
  int named = 1; // bit i: the subscript of dimension i is a tile
  int rows = 5, columns = 3, block = 17;
};
const std::vector<Field> formFields = {field("named", &FormConfig::named), field("rows", &FormConfig::rows),
                                       field("columns", &FormConfig::columns), field("block", &FormConfig::block)};

/// A view of rank 3 at tiles of rows and columns that broadcast together, or at blocks: read and written back.
void pickForms(View x, View ids, View out, View y, Tile begin, FormConfig cfg) {
  Tile rows = reshape(load(ids, {0, 0}, {cfg.rows}), {cfg.rows, 1}), columns = load(ids, {1, 0}, {cfg.columns});
  Offsets at;
  Shape blocks;
  bool isFirst = true;
  int64_t count = cfg.named ? cfg.rows * (__builtin_popcount(cfg.named) > 1 ? cfg.columns : 1) : 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (cfg.named >> axis & 1) {
      at.emplace_back(isFirst ? rows : columns);
      isFirst = false;
      continue;
    }
    at.emplace_back(axis == 2 ? begin : begin + axis);
    blocks.push_back(axis == 2 ? cfg.block : 2);
    count *= blocks.back();
  }
  Tile picked = load(x, at, blocks);
  store(out, {0}, reshape(picked, {count}));
  store(y, at, picked + 1000);
}
const Kernel pickFormsKernel = kernel("pick_forms", pickForms, formFields);

TEST_P(Addressing, TilesNameSomeDimensionsAndNumbersBeginBlocksInOthers) {
  for (int named = 1; named < 8; ++named)
    for (const int64_t begin : {int64_t(0), int64_t(-1), int64_t(7)})
      for (const int64_t block : {1, 16, 17}) {
        const Tensor x = counting(f32, {6, 9, 20}, 1), y = counting(f32, {6, 9, 20}, -2000);
        const std::vector<int64_t> rows{4, 0, -1, 9, 2}, columns{3, 21, 1};
        const bool isOne = __builtin_popcount(named) == 1;
        std::vector<int64_t> both(10, 0);
        std::copy(rows.begin(), rows.end(), both.begin());
        std::copy(columns.begin(), columns.end(), both.begin() + 5);
        const int64_t c = isOne ? 1 : 3;
        int64_t count = 5 * c;
        for (int axis = 0; axis < 3; ++axis)
          count *= named >> axis & 1 ? 1 : axis == 2 ? block : 2;
        const Tensor ids = indices(i32, {2, 5}, both), out(device, f32, {count});
        launch(pickFormsKernel, {x.ref(), ids.ref(), out.ref(), y.ref(), begin},
               "named=" + std::to_string(named) + ",block=" + std::to_string(block));
        const Raw got = read(out), written = read(y);
        std::vector<double> want(6 * 9 * 20);
        for (int64_t i = 0; i < 6 * 9 * 20; ++i)
          want[i] = static_cast<double>(i) - 2000;
        int64_t element = 0;
        const auto visit = [&](int64_t row, int64_t column, int64_t b0, int64_t b1, int64_t b2) {
          const int64_t block[] = {b0, b1, b2};
          int64_t place = 0;
          bool inside = true, isFirst = true;
          for (int axis = 0; axis < 3; ++axis) {
            int64_t at = begin + (axis == 2 ? 0 : axis) + block[axis];
            if (named >> axis & 1) {
              at = isFirst ? rows[row] : columns[column];
              isFirst = false;
            }
            inside &= at >= 0 && at < extentsOf3[axis];
            place = place * extentsOf3[axis] + at;
          }
          ASSERT_EQ(realOf(f32, got[element]), inside ? static_cast<double>(place + 1) : 0)
              << "named " << named << ", begin " << begin << ", block " << block << ", element " << element;
          if (inside)
            want[place] = static_cast<double>(place + 1001);
          ++element;
        };
        // With two or three tiles the last one selects columns; a single one is a column of rows.
        for (int64_t row = 0; row < 5; ++row)
          for (int64_t column = 0; column < c; ++column)
            for (int64_t b0 = 0; b0 < (named & 1 ? 1 : 2); ++b0)
              for (int64_t b1 = 0; b1 < (named & 2 ? 1 : 2); ++b1)
                for (int64_t b2 = 0; b2 < (named & 4 ? 1 : block); ++b2)
                  visit(row, column, b0, b1, b2);
        for (int64_t i = 0; i < 6 * 9 * 20; ++i)
          ASSERT_EQ(realOf(f32, written[i]), want[i]) << "named " << named << ", begin " << begin << ", place " << i;
      }
}

/// The rows of a matrix at positions that are counted, as a pointer's arithmetic has it.
void countPositions(View x, View y, IndexConfig cfg) {
  Tile n = program_id(0) * cfg.a + iota(cfg.a), m = iota(cfg.b);
  Tile rows = unsqueeze(n, 1), columns = unsqueeze(m, 0);
  store(y, {rows, columns}, load(x, {rows, columns}) + load(x, {program_id(0) * cfg.a, 0}, {cfg.a, cfg.b}),
        {.mask = rows < x.dim(0)});
}
const Kernel countPositionsKernel = kernel("count_positions", countPositions, indexFields);

TEST_P(Addressing, CountedPositionsAreABlock) {
  const Tensor x = counting(f32, {37, 24}, 1), y(device, f32, {40, 24});
  launch(countPositionsKernel, {x.ref(), y.ref()}, "a=8,b=17", 5);
  const Raw got = read(y);
  for (int64_t i = 0; i < 40 * 24; ++i)
    ASSERT_EQ(realOf(f32, got[i]), i < 37 * 24 && i % 24 < 17 ? 2.0 * static_cast<double>(i + 1) : 0) << i;
}

// --- Masks -----------------------------------------------------------------------------------------------------------

struct MaskConfig {
  int rows = 3, columns = 17;
  int form = 0; // of the mask: of every element, a column, a row, a scalar
};
const std::vector<Field> maskFields = {field("rows", &MaskConfig::rows), field("columns", &MaskConfig::columns),
                                       field("form", &MaskConfig::form)};

/// Loads and stores the elements that the mask selects. The others read −∞ and are not written.
void pickMasked(View x, View picks, View out, View y, Tile m, Tile n, MaskConfig cfg) {
  const Shape shape{cfg.rows, cfg.columns};
  Tile mask = cfg.form == 0   ? load(picks, {0, 0}, shape)
              : cfg.form == 1 ? load(picks, {0, 0}, {cfg.rows, 1})
              : cfg.form == 2 ? load(picks, {0, 0}, {cfg.columns})
                              : load(picks, {0, 0}, {});
  Tile tile = load(x, {m, n}, shape, {Padding::neg_inf, mask});
  store(out, {0, 0}, tile);
  store(y, {m, n}, tile + 1000, {.mask = mask});
}
const Kernel pickMaskedKernel = kernel("pick_masked", pickMasked, maskFields);

TEST_P(Addressing, AMaskLeavesOutWhatItDoesNotPick) {
  std::mt19937 random(3);
  for (int form = 0; form < 4; ++form)
    for (const auto &[rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{3, 17}, {5, 64}, {64, 3}, {2, 100}})
      for (const int64_t n : {int64_t(0), int64_t(-2), int64_t(5)})
        for (const bool turned : {false, true}) {
          Raw picks(rows * columns);
          for (uint64_t &pick : picks)
            pick = random() % 2;
          const Tensor x = counting(f32, {rows + 1, columns}, 1), y = counting(f32, {rows + 1, columns}, -9000);
          const Tensor mask = tensor(boolean, {rows, columns}, picks), out(device, f32, {rows, columns});
          TensorRef from = x.ref(), to = y.ref();
          if (turned) { // lanes lie apart
            from.extents = to.extents = {columns, rows + 1};
            from.strides = to.strides = {1, columns};
          }
          const int64_t height = turned ? columns : rows + 1, width = turned ? rows + 1 : columns, m = 1;
          launch(pickMaskedKernel, {from, mask.ref(), out.ref(), to, m, n},
                 "rows=" + std::to_string(rows) + ",columns=" + std::to_string(columns) +
                     ",form=" + std::to_string(form));
          const Raw got = read(out), written = read(y);
          std::vector<double> want(height * width);
          std::iota(want.begin(), want.end(), -9000.0);
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j) {
              const bool picked = picks[form == 0 ? i * columns + j : form == 1 ? i * columns : form == 2 ? j : 0];
              const bool inside = picked && i + m < height && j + n >= 0 && j + n < width;
              const int64_t place = turned ? (j + n) * columns + i + m : (i + m) * columns + j + n;
              ASSERT_EQ(realOf(f32, got[i * columns + j]), inside ? static_cast<double>(place + 1) : -INFINITY)
                  << "form " << form << ", " << rows << " x " << columns << ", n " << n << ": " << i << ", " << j;
              if (inside)
                want[place] = static_cast<double>(place + 1001);
            }
          for (size_t i = 0; i < want.size(); ++i)
            ASSERT_EQ(realOf(f32, written[i]), want[i])
                << "form " << form << ", " << rows << " x " << columns << ", n " << n << ": place " << i;
        }
}

/// Adds 1 in place to those of `count` elements from n on that the mask selects; the view extends beyond them.
void countUp(View x, Tile n, Tile count, IndexConfig cfg) {
  Tile inside = iota(cfg.a, i64) < count;
  store(x, {n}, load(x, {n}, {cfg.a}, {.mask = inside}) + 1, {.mask = inside});
  Tile at = cast(n, i64) + iota(cfg.a, i64) * 1;
  store(x, {where(inside, at, at % 3)}, load(x, {at}, {}, {.mask = inside}) * 2, {.mask = inside});
}
const Kernel countUpKernel = kernel("count_up", countUp, indexFields);

// The view is longer than the allocated memory: masked-off elements must not be accessed.
TEST_P(Addressing, WhatAMaskLeavesOutIsNotTouched) {
  GuardedPage page(*device);
  const int64_t elements = page.bytes() / 4;
  for (const int64_t extent : {1, 7, 16, 64, 100})
    for (const int64_t count : {int64_t(1), extent / 2, extent - 1}) {
      page.write(std::vector<uint8_t>(page.bytes(), 0));
      TensorRef view{page.begin(), i32, {elements + 1000}, {1}};
      const int64_t n = elements - count;
      launch(countUpKernel, {view, n, count}, "a=" + std::to_string(extent));
      device->synchronize();
      const std::vector<uint8_t> got = page.read();
      for (int64_t i = 0; i < elements; ++i)
        ASSERT_EQ(reinterpret_cast<const int32_t *>(got.data())[i], i >= n ? 2 : 0)
            << count << " of " << extent << ", element " << i;
    }
}

// --- Order -----------------------------------------------------------------------------------------------------------

/// A gather whose index tile and mask are overwritten before its result is used.
void overwriteNumbers(View x, View ids, View picks, View out) {
  Tile id = load(ids, {0}, {64}), pick = load(picks, {0}, {64});
  Tile rows = load(x, {id, 0}, {3}), some = load(x, {id, 1}, {}, {.mask = pick});
  store(ids, {0}, full(i32, {64}, 0));
  store(picks, {0}, full(boolean, {64}, true));
  store(out, {0, 0}, rows);
  store(out, {0, 3}, unsqueeze(some, -1));
}
const Kernel overwriteNumbersKernel = kernel("overwrite_numbers", overwriteNumbers);

TEST_P(Addressing, PositionsAndMasksAreThoseOfTheLoadsPlace) {
  std::vector<int64_t> at(64);
  Raw picks(64);
  for (int64_t i = 0; i < 64; ++i) {
    at[i] = 63 - i;
    picks[i] = i % 3 == 0;
  }
  const Tensor x = counting(f32, {64, 3}, 1), ids = indices(i32, {64}, at), mask = tensor(boolean, {64}, picks),
               out(device, f32, {64, 4});
  launch(overwriteNumbersKernel, {x.ref(), ids.ref(), mask.ref(), out.ref()});
  const Raw got = read(out);
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      const double want = static_cast<double>(j < 3 ? at[i] * 3 + j + 1 : picks[i] ? at[i] * 3 + 2 : 0);
      ASSERT_EQ(realOf(f32, got[i * 4 + j]), want) << i << ", " << j;
    }
}

/// Element at[i] of z becomes i, for all elements at once.
void storeNamed(View at, View z, ExtentConfig cfg) { store(z, {load(at, {0}, {cfg.extent})}, iota(cfg.extent) + 1); }
const Kernel storeNamedKernel = kernel("store_named", storeNamed, extentField());

// A store that selects an element several times leaves one of the values, and is no error.
TEST_P(Addressing, AStoreMayNameAnElementSeveralTimes) {
  for (const int64_t places : {1, 7, 300}) {
    constexpr int64_t count = 512;
    std::mt19937 random(3);
    std::vector<int64_t> numbers(count);
    for (int64_t &number : numbers)
      number = static_cast<int64_t>(random() % places);
    const Tensor at = indices(i64, {count}, numbers), z(device, i32, {places});
    launch(storeNamedKernel, {at.ref(), z.ref()}, extentText(count));
    const Raw got = read(z);
    for (int64_t place = 0; place < places; ++place) {
      const int64_t writer = integerOf(i32, got[place]) - 1;
      if (std::count(numbers.begin(), numbers.end(), place) == 0)
        ASSERT_EQ(writer, -1) << place;
      else
        ASSERT_TRUE(writer >= 0 && writer < count && numbers[writer] == place) << place << " has " << writer;
    }
  }
}

KILN_ON_PROCESSORS(Addressing);

} // namespace
