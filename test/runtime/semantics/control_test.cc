// Loops, branches and random numbers.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Control : public Semantics {};

// --- Carried values --------------------------------------------------------------------------------------------------

void fibonacci(View out, Tile count, ExtentConfig cfg) {
  Tile a = zeros(i64, {cfg.extent}), b = full(i64, {cfg.extent}, 1);
  for (Tile i : range(count)) {
    Tile next = a + b;
    a = b;
    b = next;
  }
  store(out, {0, 0}, a);
  store(out, {1, 0}, b);
}
const Kernel fibonacciKernel = kernel("fibonacci", fibonacci, extentField());

TEST_P(Control, CarriedTilesMayChangePlaces) {
  for (const int64_t extent : extents)
    for (const int64_t count : {0, 1, 2, 3, 40}) { // 0: the loop returns what it was given
      const Tensor out(device, i64, {2, extent});
      launch(fibonacciKernel, {out.ref(), count}, extentText(extent));
      uint64_t a = 0, b = 1;
      for (int64_t i = 0; i < count; ++i)
        a = std::exchange(b, a + b);
      const Raw got = read(out);
      for (int64_t i = 0; i < extent; ++i) {
        ASSERT_EQ(got[i], a) << count << " at " << i << " of " << extent;
        ASSERT_EQ(got[extent + i], b) << count << " at " << i << " of " << extent;
      }
    }
}

void rotate(View out, Tile count) {
  Tile a = iota(17), b = a + 100, c = a + 200;
  for (Tile i : range(count)) {
    Tile first = a;
    a = b;
    b = c;
    c = first;
  }
  store(out, {0, 0}, a);
  store(out, {1, 0}, b);
  store(out, {2, 0}, c);
}
const Kernel rotateKernel = kernel("rotate", rotate);

TEST_P(Control, ThreeTilesRotate) {
  for (const int64_t count : {0, 1, 2, 3, 7}) {
    const Tensor out(device, i32, {3, 17});
    launch(rotateKernel, {out.ref(), count});
    const Raw got = read(out);
    for (int64_t row = 0; row < 3; ++row)
      for (int64_t i = 0; i < 17; ++i)
        ASSERT_EQ(static_cast<int64_t>(got[row * 17 + i]), (row + count) % 3 * 100 + i) << count;
  }
}

void nested(View out, Tile n) {
  Tile acc = zeros(i32, {3, 4}), row = zeros(i32, {4});
  for (Tile i : range(n)) {
    row = row + 1;
    for (Tile j : range(i)) {
      acc = acc + row;
      when(j == 1, [&] { acc = acc * 2; }, [&] { row = row + cast(i, i32); });
    }
  }
  store(out, {0, 0}, acc);
}
const Kernel nestedKernel = kernel("nested", nested);

TEST_P(Control, LoopsAndBranchesNest) {
  for (const int64_t n : {0, 1, 2, 5, 8}) {
    const Tensor out(device, i32, {3, 4});
    launch(nestedKernel, {out.ref(), n});
    int32_t acc = 0, row = 0;
    for (int i = 0; i < n; ++i) {
      row += 1;
      for (int j = 0; j < i; ++j) {
        acc += row;
        if (j == 1)
          acc *= 2;
        else
          row += i;
      }
    }
    for (const uint64_t got : read(out))
      ASSERT_EQ(static_cast<int32_t>(got), acc) << n;
  }
}

void branch(View x, View out) {
  Tile a = load(x, {program_id(0), 0}, {1, 17}), b = a;
  when(sum(reshape(a, {17})) > 0.0, [&] { a = a * 2.0; }, [&] { b = b - 1.0; });
  store(out, {program_id(0), 0}, a + b);
}
const Kernel branchKernel = kernel("branch", branch);

// Only the chosen side runs, and what it does not assign keeps its value.
TEST_P(Control, OneSideOfABranchRuns) {
  const Tensor x = counting(f32, {2, 17}, -17), out(device, f32, {2, 17}); // row 0 is negative, row 1 is not
  launch(branchKernel, {x.ref(), out.ref()}, "", 2);
  const Raw got = read(out);
  for (int i = 0; i < 34; ++i)
    ASSERT_EQ(realOf(f32, got[i]), i < 17 ? 2 * (i - 17) - 1 : 3 * (i - 17)) << "at " << i;
}

// --- Bounds ----------------------------------------------------------------------------------------------------------

void collect(View out, Tile begin, Tile end, Tile step) {
  Tile at = cast(0, i64) + program_id(0);
  for (Tile i : range(begin, end, step)) {
    store(out, {at}, i);
    at = at + 1;
  }
}
const Kernel collectKernel = kernel("collect", collect);

TEST_P(Control, LoopsRunOver64BitBounds) {
  const int64_t far = int64_t(1) << 35;
  const std::vector<std::array<int64_t, 3>> cases{{far, far + 20, 3},
                                                  {-far - 5, -far, 2},
                                                  {-3, 4, 1},
                                                  {5, 5, 1},
                                                  {7, 5, 1},
                                                  {0, far, far / 4},
                                                  {INT64_MAX - 10, INT64_MAX - 2, 4}};
  for (const auto &[begin, end, step] : cases) {
    const Tensor out = tensor(i64, {16}, Raw(16, 77));
    launch(collectKernel, {out.ref(), begin, end, step});
    const Raw got = read(out);
    size_t at = 0;
    for (int64_t i = begin; i < end; i += step)
      ASSERT_EQ(static_cast<int64_t>(got[at++]), i) << begin << " to " << end;
    for (; at < 16; ++at)
      ASSERT_EQ(got[at], 77u) << begin << " to " << end << ": too many iterations";
  }
}

// --- Random numbers --------------------------------------------------------------------------------------------------

/// Philox-4x32-10 as its authors wrote it down: counter and key of 32-bit words.
uint32_t philox(uint64_t seed, uint64_t index) {
  uint32_t counter[4] = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53) * counter[0], p1 = uint64_t(0xCD9E8D57) * counter[2];
    const uint32_t next[4] = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
                              static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    std::copy(next, next + 4, counter);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter[0];
}

void randomNumbers(View bits, View uniform, Tile seed, Tile first, ExtentConfig cfg) {
  Tile index = iota(cfg.extent, i64) + first;
  store(bits, {0}, random_bits(seed, index));
  store(uniform, {0}, random(seed, index));
}
const Kernel randomKernel = kernel("random_numbers", randomNumbers, extentField());

TEST_P(Control, RandomBitsArePhilox) {
  ASSERT_EQ(philox(0, 0), 0x6627E8D5u); // known answer of Random123: counter 0, key 0
  for (const int64_t extent : extents)
    for (const auto &[seed, first] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 0}, {1, 1}, {-1, -1}, {0x123456789abcdef0, (int64_t(1) << 32) - 2}, {7, INT64_MIN}}) {
      const Tensor bits(device, i32, {extent}), uniform(device, f32, {extent});
      launch(randomKernel, {bits.ref(), uniform.ref(), seed, first}, extentText(extent));
      const Raw got = read(bits), reals = read(uniform);
      for (int64_t i = 0; i < extent; ++i) {
        const uint32_t want = philox(seed, static_cast<uint64_t>(first) + i);
        ASSERT_EQ(got[i], want) << "seed " << seed << " at " << first << " + " << i;
        const double real = realOf(f32, reals[i]);
        ASSERT_GE(real, 0);
        ASSERT_LT(real, 1);
        ASSERT_NEAR(real, want * 0x1p-32, 0x1p-24); // its upper 24 bits
      }
    }
}

KILN_ON_EVERY_DEVICE(Control);

} // namespace
