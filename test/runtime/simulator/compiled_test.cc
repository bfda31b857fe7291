// PTX of other compilers, with its sources next to it: its results are computed here once more, in plain
// C++.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln::simulator::test {

/// Numbers that follow from a seed, some of them small or at an end.
static std::vector<uint32_t> someWords(size_t count, uint64_t seed) {
  std::vector<uint32_t> words(count);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const auto word = static_cast<uint32_t>(seed >> 32);
    words[i] = i % 5 == 1 ? word % 64 : i % 7 == 2 ? words32[i % words32.size()] : word;
  }
  return words;
}

static void expectNothingFound(const Machine &machine) { EXPECT_EQ(machine.found(), std::vector<std::string>{}); }

// Virtual functions, a constant table of functions, and recursion, all with other functions in other lanes.
TEST(CompiledTest, CallsThroughTables) {
  Machine machine(compiled("calls"));
  const int64_t *out = machine.buffer(std::vector<int64_t>(64));
  machine.run("calls", {1, 1, 1}, {64, 1, 1}, {address(out)});
  expectNothingFound(machine);
  for (int64_t t = 0; t < 64; ++t) {
    const int64_t by = t % 5, area = t % 2 ? t * t * by : t * 3 + by, n = t % 7;
    const int64_t want[] = {area + n, area * n, area + n * (n + 1) / 2};
    EXPECT_EQ(out[t], want[t % 3]) << t;
  }
}

/// compiled/stack.cu's `fill`.
static int32_t filled(int32_t count, int32_t first) {
  int32_t total = 0;
  for (int32_t i = 0; i < count; ++i)
    total += first + i;
  return total + (count > 1 ? filled(count / 2, first * 2) : 0) + first + count - 1;
}

// Arrays with a different length in each lane, in loops and after recursive calls.
TEST(CompiledTest, ArraysOnTheStack) {
  Machine machine(compiled("stack"));
  const int32_t *out = machine.buffer(std::vector<int32_t>(64));
  machine.run("stack", {1, 1, 1}, {64, 1, 1}, {address(out)});
  expectNothingFound(machine);
  for (int32_t t = 0; t < 64; ++t) {
    int32_t want = filled(t % 9 + 1, t);
    for (int32_t i = 1; i < 4; ++i)
      for (int32_t j = 0; j < t % 5 + i; ++j)
        want += i * j + t;
    EXPECT_EQ(out[t], want) << t;
  }
}

// Each thread's lines are in order, formatted as in C, and printf returns the number of values.
TEST(CompiledTest, Prints) {
  for (const Order order : {Order::forward, Order::reverse, Order::random}) {
    Machine machine(compiled("printing"));
    const std::string name = "kiln";
    const int32_t *out = machine.buffer(std::vector<int32_t>(160));
    const char *text = machine.buffer(std::vector<char>(name.c_str(), name.c_str() + name.size() + 1));
    machine.run("printing", {2, 1, 1}, {40, 1, 1}, {address(out), address(text)}, 0, {.order = order});
    expectNothingFound(machine);
    size_t length = 0;
    for (int t = 0; t < 80; ++t) {
      const bool prints = t % 40 % 32 < 3;
      EXPECT_EQ(out[2 * t], prints ? 6 : 0) << t;
      EXPECT_EQ(out[2 * t + 1], prints && t % 2 ? 6 : 0) << t;
      if (!prints)
        continue;
      std::string line(200, '\0'), second = line;
      line.resize(
          static_cast<size_t>(std::snprintf(line.data(), line.size(), "thread %d: %s has %5.2f%% of %llu, %c%-4dend\n",
                                            t, "kiln", t * 12.5, 1ull << (40 + t % 8), 'a' + t % 26, -t)));
      second.resize(
          static_cast<size_t>(std::snprintf(second.data(), second.size(), "odd %#06x %+ld %e %*d|%.3s|\n",
                                            static_cast<unsigned>(t) * 17, -5000000000l - t, 1.5 * t, 6, t, "abcdef")));
      const size_t first = machine.printed.find(line);
      EXPECT_NE(first, std::string::npos) << line;
      if (t % 2) {
        EXPECT_GT(machine.printed.find(second) + 1, first + 1) << second;
      }
      length += line.size() + (t % 2 ? second.size() : 5);
    }
    EXPECT_EQ(machine.printed.size(), length);
  }
}

// Atomics on vectors of f32 and of narrow floats, and on single narrow floats.
TEST(CompiledTest, AtomicsOnVectors) {
  Machine machine(compiled("vectors"));
  std::vector<float> start(4 * 36, 0.25f);
  const float *four = machine.buffer(start);
  const float *two = machine.buffer(std::vector<float>(4));
  const uint32_t *halves = machine.buffer(std::vector<uint32_t>(8));
  const uint32_t *brains = machine.buffer(std::vector<uint32_t>{0x40803f80, 0x7fc00000}); // 4, 1; NaN, 0
  const uint16_t *half = machine.buffer(std::vector<uint16_t>(1)), *brain = machine.buffer(std::vector<uint16_t>(1));
  const float *old = machine.buffer(std::vector<float>(4 * 32));
  machine.run(
      "vectors", {1, 1, 1}, {32, 1, 1},
      {address(four), address(two), address(halves), address(brains), address(half), address(brain), address(old)});
  expectNothingFound(machine);
  std::vector<float> want = start, wantTwo(4);
  for (size_t t = 0; t < 32; ++t) {
    const auto x = static_cast<float>(t % 8 + 1);
    const float shared[] = {x, 2 * x, 3 * x, 0.5f}, own[] = {x, -x, 1, 2};
    for (size_t i = 0; i < 4; ++i) {
      want[4 * (t % 4) + i] += shared[i];
      want[4 * (4 + t) + i] += own[i];
      EXPECT_EQ(old[4 * t + i], 0.25f);
    }
    wantTwo[2 * (t % 2)] += x;
    wantTwo[2 * (t % 2) + 1] -= x;
  }
  EXPECT_EQ(std::vector<float>(four, four + want.size()), want);
  EXPECT_EQ(std::vector<float>(two, two + 4), wantTwo);
  for (size_t i = 0; i < 8; ++i) // 16 times 1 and 2, or 1 and 1
    EXPECT_EQ(halves[i], i % 4 < 2 ? 0x50004c00u : 0x4c004c00u) << i;
  EXPECT_EQ(brains[0], 0x4080401fu); // the largest of 1 and 2 … 2 + 31/64; 4 stays
  EXPECT_EQ(brains[1], 0x40003f80u); // of a number and NaN, the number
  EXPECT_EQ(*half, 0x5000);          // 32
  EXPECT_EQ(*brain, 0x4200);
}

// Triton's PTX for a sum of rows, with vectors of four.
TEST(CompiledTest, AddsRows) {
  Machine machine(compiled("add_rows"));
  std::vector<float> x(3 * 512);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i * 7 % 23);
  const float *out = machine.buffer(std::vector<float>(512));
  machine.run("add_rows", {3, 1, 1}, {128, 1, 1}, {address(machine.buffer(x)), address(out), 0, 0, 0});
  expectNothingFound(machine);
  for (size_t i = 0; i < 512; ++i)
    EXPECT_EQ(out[i], x[i] + x[512 + i] + x[1024 + i]) << i;
}

// --- Video ---------------------------------------------------------------------------------------------------------

static uint32_t low(int64_t value) { return static_cast<uint32_t>(value); }

/// compiled/video.cu, instruction by instruction.
static std::vector<uint32_t> videoResults(uint32_t a, uint32_t b, uint32_t c) {
  const auto unsignedByte = [](uint32_t word, int i) { return int64_t{word >> (8 * i) & 0xff}; };
  const auto signedByte = [](uint32_t word, int i) { return int64_t{static_cast<int8_t>(word >> (8 * i))}; };
  const auto signedHalf = [](uint32_t word, int i) { return int64_t{static_cast<int16_t>(word >> (16 * i))}; };
  uint32_t unsignedSum = 0, signedSum = 0, greater = c, differences = c, averages = 0, pairs = 0;
  for (int i = 0; i < 4; ++i) {
    const int64_t difference = std::abs(unsignedByte(a, i) - unsignedByte(b, i));
    unsignedSum += low(difference);
    signedSum += low(std::abs(signedByte(a, i) - signedByte(b, i)));
    greater += unsignedByte(a, i) > signedByte(b, i);
    differences += i == 2 ? 0 : low(difference);
  }
  averages = (low((unsignedByte(a, 1) + unsignedByte(b, 0) + 1) >> 1)) | (c & 0xff00ff00) |
             low((unsignedByte(a, 0) + unsignedByte(b, 2) + 1) >> 1) << 16;
  for (int i = 0; i < 2; ++i)
    pairs |= (low(std::clamp<int64_t>(signedHalf(a, i) + signedHalf(b, i), -32768, 32767)) & 0xffff) << (16 * i);
  const uint32_t half = low(std::max<int64_t>(a >> 16, signedHalf(a, 0))) << 16 | (c & 0xffff);
  return {unsignedSum, signedSum, pairs, averages, greater, half, differences, 0};
}

// Bytes and halves of words: each form once, on words of every kind.
TEST(CompiledTest, Video) {
  Machine machine(compiled("video"));
  const std::vector<uint32_t> a = someWords(256, 3), b = someWords(256, 4), c = someWords(256, 5);
  const uint32_t *out = machine.buffer(std::vector<uint32_t>(8 * 256));
  machine.run("video", {1, 1, 1}, {256, 1, 1},
              {address(machine.buffer(a)), address(machine.buffer(b)), address(machine.buffer(c)), address(out)});
  expectNothingFound(machine);
  for (size_t t = 0; t < 256; ++t)
    EXPECT_EQ(std::vector<uint32_t>(out + 8 * t, out + 8 * t + 8), videoResults(a[t], b[t], c[t]))
        << fmt::format("{:#x} {:#x} {:#x}", a[t], b[t], c[t]);
}

} // namespace kiln::simulator::test
