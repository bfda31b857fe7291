// Loops, branches and random numbers.

#include "test/runtime/semantics/semantics.h"

#include <array>
#include <cmath>
#include <numbers>

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
      if_(j == 1, [&] { acc = acc * 2; }, [&] { row = row + cast(i, i32); });
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
  if_(sum(reshape(a, {17})) > 0.0, [&] { a = a * 2.0; }, [&] { b = b - 1.0; });
  store(out, {program_id(0), 0}, a + b);
}
const Kernel branchKernel = kernel("branch", branch);

// Only the selected side runs. A tile that it does not assign keeps its value.
TEST_P(Control, OneSideOfABranchRuns) {
  const Tensor x = counting(f32, {2, 17}, -17), out(device, f32, {2, 17}); // row 0 is negative, row 1 is not
  launch(branchKernel, {x.ref(), out.ref()}, "", 2);
  const Raw got = read(out);
  for (int i = 0; i < 34; ++i)
    ASSERT_EQ(toDouble(f32, got[i]), i < 17 ? 2 * (i - 17) - 1 : 3 * (i - 17)) << "at " << i;
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

constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();

/// The numbers that a loop counts, by arithmetic that cannot overflow.
std::vector<int64_t> counted(__int128 begin, __int128 end, __int128 step) {
  std::vector<int64_t> values;
  if (step == least) // whose magnitude is no int64_t
    step = -most;
  for (__int128 i = begin; step > 0 ? i < end : i > end; i += step)
    values.push_back(static_cast<int64_t>(i));
  return values;
}

/// The first elements of `got` are the loop's values, and the others are unchanged.
void expectCounted(const Raw &got, int64_t begin, int64_t end, int64_t step) {
  const std::vector<int64_t> want = counted(begin, end, step);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(static_cast<int64_t>(got[i]), i < want.size() ? want[i] : 77)
        << "iteration " << i << " of range(" << begin << ", " << end << ", " << step << ")";
}

constexpr int64_t far = int64_t{1} << 35;
const std::vector<std::array<int64_t, 3>> bounds{{far, far + 20, 3},
                                                 {-far - 5, -far, 2},
                                                 {-3, 4, 1},
                                                 {5, 5, 1},
                                                 {7, 5, 1},
                                                 {0, far, far / 4},
                                                 {most - 10, most - 2, 4},
                                                 // The position after the last one would exceed the largest integer.
                                                 {most - 10, most, 3},
                                                 {most - 1, most, 10},
                                                 {most - 5, most, most},
                                                 {0, most, int64_t{1} << 62},
                                                 {-1, most, most},
                                                 // So would the distance from the first to the end.
                                                 {least, most, int64_t{1} << 62},
                                                 {least, most, most},
                                                 {least + 1, most - 1, int64_t{1} << 61},
                                                 {most, most, 1},
                                                 {most, least, 1},
                                                 {least, least + 5, 2},
                                                 // Down.
                                                 {far + 20, far, -3},
                                                 {4, -3, -1},
                                                 {5, 5, -1},
                                                 {5, 7, -1},
                                                 {far, 0, -far / 4},
                                                 {least + 10, least, -3},
                                                 {least + 1, least, -10},
                                                 {0, least, -(int64_t{1} << 62)},
                                                 {most, least, -(int64_t{1} << 62)},
                                                 {most, least, -most},
                                                 {most, least, least},
                                                 {most, most - 5, -2},
                                                 {least, most, -1}};

TEST_P(Control, LoopsRunOver64BitBounds) {
  for (const auto &[begin, end, step] : bounds) {
    const Tensor out = tensor(i64, {16}, Raw(16, 77));
    launch(collectKernel, {out.ref(), begin, end, step});
    expectCounted(read(out), begin, end, step);
  }
}

// A step of 0 that is unknown during tracing.
TEST_P(Control, DynamicStepOfZeroCountsAsOne) {
  const Tensor out = tensor(i64, {16}, Raw(16, 77));
  launch(collectKernel, {out.ref(), -2, 3, int64_t{0}});
  expectCounted(read(out), -2, 3, 1);
}

void collectUntil(View out, Tile begin, Tile end, Tile step, Tile last) {
  Tile at = cast(0, i64) + program_id(0);
  for (Tile i : range(begin, end, step)) {
    break_if(i == last);
    store(out, {at}, i);
    at = at + 1;
  }
  store(out, {at}, 1000);
}
const Kernel collectUntilKernel = kernel("collect_until", collectUntil);

TEST_P(Control, LoopsThatCountDownMayBeLeft) {
  const Tensor out = tensor(i64, {6}, Raw(6, 77));
  launch(collectUntilKernel, {out.ref(), 20, -20, -4, 8});
  EXPECT_EQ(read(out), (Raw{20, 16, 12, 1000, 77, 77}));
}

struct RangeConfig {
  int64_t begin = 0, end = 0, step = 1;
};

void collectKnown(View out, RangeConfig cfg) {
  Tile at = cast(0, i64) + program_id(0);
  for (Tile i : range(cfg.begin, cfg.end, cfg.step)) {
    store(out, {at}, i);
    at = at + 1;
  }
}
const Kernel collectKnownKernel =
    kernel("collect_known", collectKnown, {"out"},
           {field("begin", &RangeConfig::begin), field("end", &RangeConfig::end), field("step", &RangeConfig::step)});

TEST_P(Control, LoopsRunOverBoundsKnownWhileCompiling) {
  for (const auto &[begin, end, step] : bounds) {
    const Tensor out = tensor(i64, {16}, Raw(16, 77));
    launch(collectKnownKernel, {out.ref()}, RangeConfig{begin, end, step});
    expectCounted(read(out), begin, end, step);
  }
}

/// Sums the 16 elements that begin `shift` after each position.
template <class Number> void addAlong(View x, View out, Number begin, Number end, Number step, Number shift) {
  Tile total = zeros(f32, {16});
  for (Tile i : range(begin, end, step))
    total = total + load(x, {i + shift}, {16});
  store(out, {0}, total);
}
void addAlongScalars(View x, View out, Tile begin, Tile end, Tile step, Tile shift) {
  addAlong(x, out, begin, end, step, shift);
}
const Kernel addAlongKernel = kernel("add_along", addAlongScalars, {"x", "out", "begin", "end", "step", "shift"});

struct ShiftedConfig {
  int64_t begin = 0, end = 0, step = 1, shift = 0;
};
void addAlongKnown(View x, View out, ShiftedConfig cfg) { addAlong(x, out, cfg.begin, cfg.end, cfg.step, cfg.shift); }
const Kernel addAlongKnownKernel = kernel("add_along_known", addAlongKnown, {"x", "out"},
                                          {field("begin", &ShiftedConfig::begin), field("end", &ShiftedConfig::end),
                                           field("step", &ShiftedConfig::step), field("shift", &ShiftedConfig::shift)});

// Positions near the limits of 64 bits, and those that wrap there, are outside every view.
TEST_P(Control, LoadsFarOutsideReadPadding) {
  const Tensor x = counting(f32, {40}, 1);
  for (const auto &[begin, end, step] : bounds)
    for (const int64_t shift : {0, 100}) {
      float want[16] = {};
      for (int64_t lane = 0; lane < 16; ++lane)
        for (const int64_t i : counted(begin, end, step))
          if (const uint64_t at = static_cast<uint64_t>(i) + shift + lane; at < 40)
            want[lane] += static_cast<float>(at) + 1;
      for (const bool known : {false, true}) {
        const Tensor out(device, f32, {16});
        if (known)
          launch(addAlongKnownKernel, {x.ref(), out.ref()}, ShiftedConfig{begin, end, step, shift});
        else
          launch(addAlongKernel, {x.ref(), out.ref(), begin, end, step, shift});
        const Raw got = read(out);
        for (int64_t lane = 0; lane < 16; ++lane)
          ASSERT_EQ(toDouble(f32, got[lane]), want[lane])
              << "lane " << lane << " of range(" << begin << ", " << end << ", " << step << ") + " << shift;
      }
    }
}

// --- Random numbers --------------------------------------------------------------------------------------------------

/// Philox-4x32-10 as its authors wrote it down: counter and key of 32-bit words.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t index) {
  std::array<uint32_t, 4> counter = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53) * counter[0], p1 = uint64_t(0xCD9E8D57) * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// bits (5, n): those of random_bits, then the four words. uniform (n).
void randomNumbers(View bits, View uniform, Tile seed, Tile first, ExtentConfig cfg) {
  Tile index = iota(cfg.extent, i64) + first;
  store(bits, {0, 0}, random_bits(seed, index));
  const std::array<Tile, 4> words = random_words(seed, index);
  for (int word = 0; word < 4; ++word)
    store(bits, {word + 1, 0}, words[word]);
  store(uniform, {0}, random(seed, index));
}
const Kernel randomKernel = kernel("random_numbers", randomNumbers, extentField());

TEST_P(Control, RandomBitsArePhilox) {
  const std::array<uint32_t, 4> known = {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8};
  ASSERT_EQ(philox(0, 0), known); // an answer of Random123's: counter 0, key 0
  for (const int64_t extent : extents)
    for (const auto &[seed, first] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 0}, {1, 1}, {-1, -1}, {0x123456789abcdef0, (int64_t(1) << 32) - 2}, {7, INT64_MIN}}) {
      const Tensor bits(device, i32, {5, extent}), uniform(device, f32, {extent});
      launch(randomKernel, {bits.ref(), uniform.ref(), seed, first}, extentText(extent));
      const Raw got = read(bits), reals = read(uniform);
      for (int64_t i = 0; i < extent; ++i) {
        const std::array<uint32_t, 4> words = philox(seed, static_cast<uint64_t>(first) + i);
        for (int64_t row = 0; row < 5; ++row)
          ASSERT_EQ(got[row * extent + i], words[std::max<int64_t>(row - 1, 0)])
              << "seed " << seed << " at " << first << " + " << i << ", row " << row;
        const uint32_t want = words[0];
        const double real = toDouble(f32, reals[i]);
        ASSERT_GE(real, 0);
        ASSERT_LT(real, 1);
        ASSERT_NEAR(real, want * 0x1p-32, 0x1p-24); // its upper 24 bits
      }
    }
}

void randomNormals(View out, Tile seed, Tile first, ExtentConfig cfg) {
  store(out, {0}, random_normal(seed, iota(cfg.extent, i64) + first));
}
const Kernel normalKernel = kernel("random_normals", randomNormals, extentField());

// In units of 2^−23 of the radius r: the error of log is 1.5; the root halves that and rounds, and the product rounds:
// 1.75 at most. That of the angle, up to π, is the roundings of 2π · 2^−32 and of the product: 1.47 · π / 2 = 2.3. That
// of the cosine, at most 1, is 2 units in the last place below 1, of 2^−24 each: 1. Together 5.1.
TEST_P(Control, RandomNormalIsItsFormula) {
  for (const auto &[seed, first] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {-1, -1}, {0x123456789abcdef0, (int64_t(1) << 32) - 2}}) {
    const int64_t count = 2000;
    const Tensor out(device, f32, {count});
    launch(normalKernel, {out.ref(), seed, first}, extentText(count));
    const Raw got = read(out);
    for (int64_t i = 0; i < count; ++i) {
      const std::array<uint32_t, 4> words = philox(seed, static_cast<uint64_t>(first) + i);
      const double u = (static_cast<float>(words[0]) + 0.5f) * 0x1p-32f, radius = std::sqrt(-2 * std::log(u)),
                   angle = static_cast<float>(static_cast<int32_t>(words[1])) * (2 * std::numbers::pi * 0x1p-32);
      ASSERT_NEAR(toDouble(f32, got[i]), radius * std::cos(angle), 5.1 * 0x1p-23 * radius)
          << "seed " << seed << " at " << first << " + " << i;
    }
  }
}

// For n draws the mean differs by 5 / √n, the variance by 5 · √(2 / n), once in 1.5 million; the seed is fixed.
TEST_P(Control, RandomNormalHasMeanZeroAndDeviationOne) {
  const int64_t count = 4096;
  const Tensor out(device, f32, {count});
  launch(normalKernel, {out.ref(), int64_t(42), int64_t(0)}, extentText(count));
  const Raw got = read(out);
  double total = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double x = toDouble(f32, got[i]);
    ASSERT_LT(std::abs(x), 6.8);
    total += x, squares += x * x;
  }
  const double mean = total / count;
  EXPECT_LT(std::abs(mean), 5 / std::sqrt(double(count)));
  EXPECT_LT(std::abs(squares / count - mean * mean - 1), 5 * std::sqrt(2.0 / count));
}

KILN_ON_PROCESSORS(Control);

} // namespace
