// PTX that other compilers made, beside the sources that they made it of: what comes out is computed here once more, in
// plain C++.

#include "test/runtime/simulator/machine.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace kiln::simulator::test {

static uint64_t address(const void *place) { return reinterpret_cast<uint64_t>(place); }

static std::string compiled(const std::string &name) {
  return readText(std::string(KILN_COMPILED_FOLDER "/") + name + ".ptx");
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

// Arrays of a length of each lane's own, in loops and behind recursive calls.
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

// Each thread's lines come in its own order, formatted as C does, and printf returns how many values it took.
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

// What Triton makes of a sum of rows: vectors of four.
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

} // namespace kiln::simulator::test
