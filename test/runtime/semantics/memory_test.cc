// Loads, stores, gathers, scatters and atomics: ragged edges on both sides, aliasing in program order, strange strides.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class Memory : public Semantics {};

// --- Edges -----------------------------------------------------------------------------------------------------------

struct EdgeConfig {
  int extent = 1;
  int padding = 0;
};

/// Reads at `from` and writes at `to`, both any number.
void shift(View x, View y, Tile from, Tile to, EdgeConfig cfg) {
  store(y, {to}, load(x, {from}, {cfg.extent}, static_cast<Padding>(cfg.padding)));
}
const Kernel shiftKernel =
    kernel("shift", shift, {field("extent", &EdgeConfig::extent), field("padding", &EdgeConfig::padding)});

struct FarConfig {
  int64_t offset = 0;
  int extent = 1;
  bool asks = false; // for the views' extents: part of the specialisation
};

/// Reads and writes at an offset that is known while tracing.
void far(View x, View y, FarConfig cfg) {
  if (cfg.asks) {
    x.extent(0);
    y.extent(0);
  }
  store(y, {0}, load(x, {cfg.offset}, {cfg.extent}));
  store(y, {cfg.offset}, full(y.type(), {cfg.extent}, 7));
}
const Kernel farKernel =
    kernel("far", far,
           {field("offset", &FarConfig::offset), field("extent", &FarConfig::extent), field("asks", &FarConfig::asks)});

// The sum of an offset and the tile's extent may exceed 64 bits: the tile is still outside.
TEST_P(Memory, ConstantOffsetsAtTheEndsOf64BitsLieOutside) {
  const int64_t size = 5;
  for (const Type type : {i8, i32, f64})
    for (const int64_t extent : {1, 7, 33})
      for (const int64_t offset : {INT64_MIN, INT64_MIN + 1, INT64_MAX, INT64_MAX - 7, INT64_MAX / 2})
        for (const char *asks : {"0", "1"}) {
          const Tensor x = counting(type, {size}, 1), y = counting(type, {size}, 1);
          launch(farKernel, {x.ref(), y.ref()},
                 "offset=" + std::to_string(offset) + "," + extentText(extent) + ",asks=" + asks);
          const Raw got = read(y);
          for (int64_t j = 0; j < size; ++j)
            ASSERT_EQ(isFloat(type) ? realOf(type, got[j]) : integerOf(type, got[j]), j < extent ? 0 : j + 1)
                << nameOf(type) << " at " << offset << ", element " << j << " of " << extent;
        }
}

// Integer-valued data, so that any misplacement is an exact inequality. Other elements must be unchanged.
TEST_P(Memory, EdgesAreExactOnBothSidesAtEveryExtent) {
  const int64_t size = 40;
  for (const Type type : {i8, i32, f32, bf16, f64})
    for (const int64_t extent : extents) {
      std::vector<int64_t> starts{0,
                                  1,
                                  -1,
                                  -extent,
                                  -extent + 1,
                                  size - 1,
                                  size,
                                  size + 5,
                                  size - extent,
                                  INT64_MIN,
                                  INT64_MAX - 1,
                                  int64_t(1) << 32,
                                  -(int64_t(1) << 32) + 3};
      for (const int64_t from : starts)
        for (const int64_t to : {int64_t(0), int64_t(-2), size - 3, INT64_MAX, -(int64_t(1) << 33)}) {
          const Tensor x = counting(type, {size}, 1), y = counting(type, {size}, -41);
          launch(shiftKernel, {x.ref(), y.ref(), from, to}, extentText(extent));
          const Raw before = read(counting(type, {size}, -41)), source = read(x), got = read(y);
          for (int64_t j = 0; j < size; ++j) {
            // Unsigned, because offsets may be at the ends of 64 bits.
            const uint64_t i = static_cast<uint64_t>(j) - static_cast<uint64_t>(to);
            const uint64_t at = static_cast<uint64_t>(from) + i;
            const uint64_t want = i >= static_cast<uint64_t>(extent) ? before[j] : at < 40 ? source[at] : 0;
            ASSERT_EQ(got[j], want) << nameOf(type) << " from " << from << " to " << to << " at " << j << " of "
                                    << extent;
          }
        }
    }
}

TEST_P(Memory, PaddingIsWhatWasAskedFor) {
  const double values[] = {0, -0., INFINITY, -INFINITY, NAN};
  for (const Type type : floatTypes)
    for (int padding = 0; padding < 5; ++padding) {
      const Tensor x = counting(type, {5}, 1), y(device, type, {17});
      launch(shiftKernel, {x.ref(), y.ref(), int64_t(-3), int64_t(0)}, "extent=17,padding=" + std::to_string(padding));
      const Raw got = read(y);
      for (int i = 0; i < 17; ++i) {
        const double want = i >= 3 && i < 8 ? i - 2 : values[padding];
        EXPECT_TRUE(same(type, got[i], rawOfReal(type, want)))
            << nameOf(type) << ", padding " << padding << " at " << i;
      }
    }
}

struct BlockConfig {
  int rows = 4, columns = 8;
  bool fixed = false; // extents of the views are part of the specialisation
};

/// y = x + 1 in blocks over a grid of rows and columns.
void addOne(View x, View y, BlockConfig cfg) {
  if (cfg.fixed)
    (void)(x.extent(0) + x.extent(1) + y.extent(1));
  Tile columns = (x.dim(1) + (cfg.columns - 1)) / cfg.columns;
  Tile m = program_id(0) / columns * cfg.rows, n = program_id(0) % columns * cfg.columns;
  store(y, {m, n}, load(x, {m, n}, {cfg.rows, cfg.columns}) + 1);
}
const Kernel addOneKernel = kernel(
    "add_one", addOne,
    {field("rows", &BlockConfig::rows), field("columns", &BlockConfig::columns), field("fixed", &BlockConfig::fixed)});

// The tensor is wider than the view, so that a byte written outside of the view shows.
TEST_P(Memory, RaggedBlocksCoverAViewAndNothingElse) {
  for (const bool fixed : {false, true})
    for (const auto &[rows, columns] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {4, 8}, {5, 17}, {3, 64}, {9, 7}}) {
      const Tensor x = counting(f32, {rows + 2, columns + 3}), y(device, f32, {rows + 2, columns + 3});
      const auto inner = [&, rows = rows, columns = columns](const Tensor &t) {
        return t.ref().slice(0, 1, rows).slice(1, 2, columns);
      };
      launch(addOneKernel, {inner(x), inner(y)}, fixed ? "fixed=1" : "", (rows + 3) / 4 * ((columns + 7) / 8));
      const Raw got = read(y);
      for (int64_t i = 0; i < rows + 2; ++i)
        for (int64_t j = 0; j < columns + 3; ++j) {
          const bool inside = i >= 1 && i <= rows && j >= 2 && j < columns + 2;
          const int64_t at = i * (columns + 3) + j;
          ASSERT_EQ(realOf(f32, got[at]), inside ? static_cast<double>(at + 1) : 0) << i << ", " << j;
        }
    }
}

// Offsets of rows exceed 2^31; a stride of 0 keeps them all in the same memory.
TEST_P(Memory, ViewsMayHaveMoreRowsThan32BitsCount) {
  const int64_t rows = (int64_t(1) << 31) + 5;
  const Tensor x = counting(f32, {16}), y(device, f32, {4, 8});
  TensorRef tall = x.ref();
  tall.extents = {rows, 16};
  tall.strides = {0, 1};
  struct Rows {
    static void copy(View x, View y, Tile m) { store(y, {0, 0}, load(x, {m, 4}, {4, 8}, Padding::neg_inf)); }
  };
  static const Kernel copyKernel = kernel("copy_rows", Rows::copy);
  launch(copyKernel, {tall, y.ref(), rows - 2});
  const Raw got = read(y);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 8; ++j)
      EXPECT_EQ(realOf(f32, got[i * 8 + j]), i < 2 ? 4 + j : -INFINITY) << i << ", " << j;
}

// --- Order and aliasing ----------------------------------------------------------------------------------------------

void sumAndDifference(View x, View y, ExtentConfig cfg) {
  Tile a = load(x, {0}, {cfg.extent}), b = load(y, {0}, {cfg.extent});
  store(x, {0}, a + b);
  store(y, {0}, a - b);
}
const Kernel sumAndDifferenceKernel = kernel("sum_and_difference", sumAndDifference, extentField());

void swapViews(View x, View y, ExtentConfig cfg) {
  Tile a = load(x, {0}, {cfg.extent}), b = load(y, {0}, {cfg.extent});
  store(x, {0}, b);
  store(y, {0}, a);
}
const Kernel swapKernel = kernel("swap_views", swapViews, extentField());

// A loaded tile is a value: the first store must not reach the second one's operands.
TEST_P(Memory, ALoadedTileIsAValue) {
  for (const int64_t extent : extents) {
    const Tensor x = counting(f32, {extent}, 5), y = counting(f32, {extent}, -9);
    launch(sumAndDifferenceKernel, {x.ref(), y.ref()}, extentText(extent));
    const Raw sums = read(x), differences = read(y);
    for (int64_t i = 0; i < extent; ++i) {
      ASSERT_EQ(realOf(f32, sums[i]), 2 * i - 4);
      ASSERT_EQ(realOf(f32, differences[i]), 14);
    }
    launch(swapKernel, {x.ref(), y.ref()}, extentText(extent));
    ASSERT_EQ(read(x), differences);
    ASSERT_EQ(read(y), sums);
  }
}

// Views that overlap by all but a few elements, moved in both directions.
TEST_P(Memory, OverlappingCopiesReadBeforeTheyWrite) {
  for (const int64_t extent : extents)
    for (const int64_t distance : {1, 5, 16}) {
      const int64_t size = extent + distance;
      for (const bool up : {true, false}) {
        const Tensor x = counting(f32, {size});
        const TensorRef low = x.ref().slice(0, 0, extent), high = x.ref().slice(0, distance, extent);
        launch(shiftKernel, {up ? low : high, up ? high : low, int64_t(0), int64_t(0)}, extentText(extent));
        const Raw got = read(x);
        for (int64_t i = 0; i < size; ++i) {
          const int64_t want = up ? (i >= distance ? i - distance : i) : (i < extent ? i + distance : i);
          ASSERT_EQ(realOf(f32, got[i]), want) << extent << " by " << distance << " at " << i;
        }
      }
    }
}

/// Stores a row and reads it back as a column of another shape.
void storeThenLoad(View x, View y) {
  store(x, {0, 0}, reshape(iota(12), {3, 4}));
  store(y, {0, 0}, load(x, {1, 1}, {2, 2}) + 100);
  store(x, {1, 1}, load(y, {0, 0}, {2, 2}) * 2);
  store(y, {1, 0}, load(x, {1, 1}, {1, 2}));
}
const Kernel storeThenLoadKernel = kernel("store_then_load", storeThenLoad);

TEST_P(Memory, ALoadSeesTheStoresBeforeIt) {
  const Tensor x(device, i32, {3, 4}), y(device, i32, {2, 2});
  launch(storeThenLoadKernel, {x.ref(), y.ref()});
  EXPECT_EQ(read(y), (Raw{105, 106, 210, 212}));
  EXPECT_EQ(read(x), (Raw{0, 1, 2, 3, 4, 210, 212, 7, 8, 218, 220, 11}));
}

// --- bool ------------------------------------------------------------------------------------------------------------

void invert(View x, View y) { store(y, {0}, !load(x, {0}, {256})); }
const Kernel invertKernel = kernel("invert", invert);

// Any byte except 0 is true; stores write 0 or 1.
TEST_P(Memory, BoolIsAByteThatIsNotZero) {
  Raw bytes(256);
  for (int i = 0; i < 256; ++i)
    bytes[i] = i;
  const Tensor x = tensor(boolean, {256}, bytes), y = tensor(boolean, {256}, Raw(256, 0xAA));
  launch(invertKernel, {x.ref(), y.ref()});
  const Raw got = read(y);
  for (int i = 0; i < 256; ++i)
    ASSERT_EQ(got[i], i == 0 ? 1u : 0u) << "byte " << i;
}

// --- Rows by index ---------------------------------------------------------------------------------------------------

struct RowsConfig {
  int rows = 6, columns = 17;
};

void gatherRows(View x, View rows, View y, Tile column, RowsConfig cfg) {
  store(y, {0, 0}, load(x, {load(rows, {0}, {cfg.rows}), column}, {cfg.columns}, Padding::zero));
}
const Kernel gatherKernel =
    kernel("gather_rows", gatherRows, {field("rows", &RowsConfig::rows), field("columns", &RowsConfig::columns)});

void scatterRows(View x, View rows, View y, Tile column, RowsConfig cfg) {
  store(y, {load(rows, {0}, {cfg.rows}), column}, load(x, {0, 0}, {cfg.rows, cfg.columns}));
}
const Kernel scatterKernel =
    kernel("scatter_rows", scatterRows, {field("rows", &RowsConfig::rows), field("columns", &RowsConfig::columns)});

TEST_P(Memory, GatherRepeatsRowsAndPadsThoseOutside) {
  const std::vector<int64_t> index{4, 0, -1, 4, 5, 1};
  for (const Type type : {i32, i64})
    for (const int64_t column : {int64_t(0), int64_t(-3), int64_t(12)}) {
      Raw raw;
      for (const int64_t row : index)
        raw.push_back(rawOfInteger(type, row));
      const Tensor x = counting(f32, {5, 20}, 1), rows = tensor(type, {6}, raw), y(device, f32, {6, 17});
      launch(gatherKernel, {x.ref(), rows.ref(), y.ref(), column});
      const Raw got = read(y);
      for (int64_t i = 0; i < 6; ++i)
        for (int64_t j = 0; j < 17; ++j) {
          const int64_t at = column + j;
          const bool inside = index[i] >= 0 && index[i] < 5 && at >= 0 && at < 20;
          ASSERT_EQ(realOf(f32, got[i * 17 + j]), inside ? static_cast<double>(index[i] * 20 + at + 1) : 0)
              << i << ", " << j;
        }
    }
}

TEST_P(Memory, ScatterDropsRowsAndColumnsOutside) {
  const std::vector<int64_t> index{4, 0, -1, 7, 2, int64_t(1) << 40};
  Raw raw(index.begin(), index.end());
  const Tensor x = counting(f32, {6, 17}, 1), rows = tensor(i64, {6}, raw), y(device, f32, {5, 10});
  launch(scatterKernel, {x.ref(), rows.ref(), y.ref(), int64_t(-4)});
  const Raw got = read(y);
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t column = 0; column < 10; ++column) {
      double want = 0;
      for (int64_t i = 0; i < 6; ++i)
        if (index[i] == row)
          want = static_cast<double>(i * 17 + column + 4 + 1);
      ASSERT_EQ(realOf(f32, got[row * 10 + column]), want) << row << ", " << column;
    }
}

// --- Atomics ---------------------------------------------------------------------------------------------------------

void count(View total, View before, ExtentConfig cfg) {
  Tile old = atomic_add(total, {-1}, full(total.type(), {cfg.extent}, 3));
  store(before, {program_id(0), 0}, old);
}
const Kernel countKernel = kernel("count", count, extentField());

// Whole numbers, so that float sums are exact in any order: no addition is lost, and the old values seen by the
// programs are 0, 3, 6, … in some order.
TEST_P(Memory, AtomicAddsAreIndivisibleAndReturnTheOldValue) {
  const int64_t programs = 500, size = 5;
  for (const Type type : {i32, i64, f32, f64}) {
    device->setThreads(4);
    const Tensor total(device, type, {size}), before(device, type, {programs, 17});
    launch(countKernel, {total.ref(), before.ref()}, extentText(17), programs);
    const auto number = [&](uint64_t raw) {
      return isFloat(type) ? realOf(type, raw) : static_cast<double>(integerOf(type, raw));
    };
    for (const uint64_t sum : read(total))
      EXPECT_EQ(number(sum), 3 * programs) << nameOf(type);
    const Raw old = read(before);
    for (int64_t j = 0; j < 17; ++j) {
      std::vector<double> seen;
      for (int64_t p = 0; p < programs; ++p)
        seen.push_back(number(old[p * 17 + j]));
      std::sort(seen.begin(), seen.end());
      for (int64_t p = 0; p < programs; ++p)
        ASSERT_EQ(seen[p], j >= 1 && j <= size ? 3. * p : 0) << nameOf(type) << " at " << j;
    }
  }
}

KILN_ON_PROCESSORS(Memory);

} // namespace
