// Memory, other than single accesses, which accesses_test draws: order and aliasing, booleans, extents, and atomic
// additions of many programs.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Memory : public Semantics {};

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
      ASSERT_EQ(toDouble(f32, sums[i]), 2 * i - 4);
      ASSERT_EQ(toDouble(f32, differences[i]), 14);
    }
    launch(swapKernel, {x.ref(), y.ref()}, extentText(extent));
    ASSERT_EQ(read(x), differences);
    ASSERT_EQ(read(y), sums);
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

TEST_P(Memory, PositionsAndMasksAreThoseOfTheLoadsPlace) {
  Raw at, picks;
  for (int64_t i = 0; i < 64; ++i) {
    at.push_back(63 - i);
    picks.push_back(i % 3 == 0);
  }
  const Tensor x = counting(f32, {64, 3}, 1), ids = tensor(i32, {64}, at), mask = tensor(boolean, {64}, picks),
               out(device, f32, {64, 4});
  launch(overwriteNumbersKernel, {x.ref(), ids.ref(), mask.ref(), out.ref()});
  const Raw got = read(out);
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      const double want = static_cast<double>(j < 3 ? at[i] * 3 + j + 1 : picks[i] ? at[i] * 3 + 2 : 0);
      ASSERT_EQ(toDouble(f32, got[i * 4 + j]), want) << i << ", " << j;
    }
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

// --- Extents
// -----------------------------------------------------------------------------------------------------------

void extentsOf(View x, View out) {
  for (int axis = 0; axis < 5; ++axis) {
    store(out, {0, axis}, x.dim(axis));
    store(out, {1, axis}, x.extent(axis));
  }
  for (int axis = 0; axis < 3; ++axis) {
    store(out, {2, axis}, num_programs(axis));
    if_(program_id(axis) == num_programs(axis) - 1, [&] { store(out, {3, axis}, program_id(axis)); });
  }
}
const Kernel extentsOfKernel = kernel("extents_of", extentsOf);

TEST_P(Memory, ExtentsOfViewsAndGridAreKnown) {
  const Tensor x(device, f32, {2, 7, 1, 5, 3}), out(device, i64, {4, 5});
  kiln::launch(*device, extentsOfKernel, {4, 2, 3}, {x.ref(), out.ref()});
  EXPECT_EQ(read(out), (Raw{2, 7, 1, 5, 3, 2, 7, 1, 5, 3, 4, 2, 3, 0, 0, 3, 1, 2, 0, 0}));
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
      return isFloat(type) ? toDouble(type, raw) : static_cast<double>(integerOf(type, raw));
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
