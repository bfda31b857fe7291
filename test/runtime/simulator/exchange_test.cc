// Exchanges between lanes, by the ISA's pseudo-code written again here.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace kiln::simulator::test {

/// Runs an instruction in one full warp: operand columns have 32 rows.
static Column inWarp(const std::string &instruction, const std::string &resultType,
                     const std::vector<Column> &operands) {
  return evaluate(instruction, resultType, std::vector<std::string>(operands.size(), "b32"), operands);
}

static Column lanes() {
  Column column;
  for (uint64_t lane = 0; lane < 32; ++lane)
    column.push_back(lane * 10 + 3);
  return column;
}

// shfl of every mode, amount and segment: the value, and whether its source was in range.
TEST(ShuffleTest, EveryModeAmountAndSegment) {
  const Column values = lanes();
  for (const std::string mode : {"up", "down", "bfly", "idx"})
    for (const int width : {32, 16, 8, 1})
      for (const int amount : {0, 1, 5, 16, 31}) {
        const int mask = 32 - width, clamp = (mode == "up" ? 0 : 31) | mask << 8;
        const std::string shuffle = fmt::format("shfl.sync.{}.b32 %x|%q, %a, {}, {}, -1;", mode, amount, clamp);
        const Column got = inWarp("{ .reg .b32 %x; .reg .pred %q; " + shuffle + " mov.b32 %d, %x; }", "b32", {values});
        const Column good =
            inWarp("{ .reg .b32 %x; .reg .pred %q; " + shuffle + " selp.b32 %d, 1, 0, %q; }", "b32", {values});
        for (int lane = 0; lane < 32; ++lane) {
          const int first = lane / width * width, last = first + width - 1;
          int source = lane;
          if (mode == "up")
            source = lane - amount;
          else if (mode == "down")
            source = lane + amount;
          else if (mode == "bfly")
            source = lane ^ amount;
          else
            source = first | (amount & (width - 1));
          const bool inside = source >= (mode == "up" ? first : 0) && source <= last;
          EXPECT_EQ(good[static_cast<size_t>(lane)], inside) << shuffle << " lane " << lane;
          EXPECT_EQ(got[static_cast<size_t>(lane)], values[static_cast<size_t>(inside ? source : lane)])
              << shuffle << " lane " << lane;
        }
      }
}

// A lane that reads one that does not take part is found.
TEST(ShuffleTest, AbsentSourceIsFound) {
  Machine machine(kernel(1, ".reg .b32 %r; .reg .pred %q;",
                         "setp.gt.u32 %q, %t, 7;\n@%q bra done;\nshfl.sync.down.b32 %r, %t, 4, 31, 255;\ndone:"));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {0});
  ASSERT_EQ(machine.found().size(), 1u);
  EXPECT_EQ(machine.found()[0], "shuffle: reads lane 8, which does not take part (mask 0xff)");
}

// Votes over the members.
TEST(VoteTest, AllAnyBallot) {
  Column bits;
  for (uint64_t lane = 0; lane < 32; ++lane)
    bits.push_back(lane % 3 == 0);
  uint64_t mask = 0;
  for (uint64_t lane = 0; lane < 32; ++lane)
    mask |= static_cast<uint64_t>(lane % 3 == 0) << lane;
  const std::string test = "{ .reg .pred %q, %z; setp.ne.u32 %q, %a, 0; ";
  EXPECT_EQ(inWarp(test + "vote.sync.ballot.b32 %d, %q, -1; }", "b32", {bits}), Column(32, mask));
  EXPECT_EQ(inWarp(test + "vote.sync.ballot.b32 %d, !%q, -1; }", "b32", {bits}), Column(32, ~mask & 0xffffffff));
  EXPECT_EQ(inWarp(test + "vote.sync.any.pred %z, %q, -1; selp.b32 %d, 1, 0, %z; }", "b32", {bits}), Column(32, 1));
  EXPECT_EQ(inWarp(test + "vote.sync.all.pred %z, %q, -1; selp.b32 %d, 1, 0, %z; }", "b32", {bits}), Column(32, 0));
}

// match.any gives each lane the mask of lanes with an equal value.
TEST(MatchTest, LanesWithTheSameValue) {
  Column values;
  for (uint64_t lane = 0; lane < 32; ++lane)
    values.push_back(lane * lane % 5);
  const Column got = inWarp("match.any.sync.b32 %d, %a, -1;", "b32", {values});
  for (size_t lane = 0; lane < 32; ++lane) {
    uint64_t want = 0;
    for (size_t other = 0; other < 32; ++other)
      want |= static_cast<uint64_t>(values[other] == values[lane]) << other;
    EXPECT_EQ(got[lane], want) << lane;
  }
}

// Reductions over the warp.
TEST(ReduxTest, OperationsByDefinition) {
  const Column values = lanes();
  uint64_t sum = 0, all = ~uint64_t{0}, any = 0, odd = 0;
  for (const uint64_t value : values)
    sum += value, all &= value, any |= value, odd ^= value;
  EXPECT_EQ(inWarp("redux.sync.add.u32 %d, %a, -1;", "b32", {values}), Column(32, sum));
  EXPECT_EQ(inWarp("redux.sync.max.s32 %d, %a, -1;", "b32", {values}), Column(32, 313));
  EXPECT_EQ(inWarp("redux.sync.min.u32 %d, %a, -1;", "b32", {values}), Column(32, 3));
  EXPECT_EQ(inWarp("redux.sync.and.b32 %d, %a, -1;", "b32", {values}), Column(32, all));
  EXPECT_EQ(inWarp("redux.sync.or.b32 %d, %a, -1;", "b32", {values}), Column(32, any));
  EXPECT_EQ(inWarp("redux.sync.xor.b32 %d, %a, -1;", "b32", {values}), Column(32, odd));
}

// f32 on sm_100a: NaN matters only if the instruction says so, or if there is no number; +0 is the greater
// zero.
TEST(ReduxTest, FloatsByDefinition) {
  const float none = NAN, infinite = INFINITY;
  const std::string form = kernel(2, ".reg .f32 %f, %g;",
                                  "add.u64 %o, %o, %p0; ld.global.f32 %f, [%o]; redux.sync.{}.f32 %g, %f, -1;\n"
                                  "mul.wide.u32 %o, %t, 8; add.u64 %o, %o, %p1; st.global.f32 [%o], %g;"),
                    head = ".version 8.6\n.target sm_100a\n.address_size 64\n";
  const auto expect = [&](const std::string &operation, const std::vector<float> &numbers, float want) {
    std::string text = head + form.substr(module("").size());
    text.replace(text.find("{}.f32"), 2, operation);
    std::vector<float> in(64), out(64);
    for (size_t lane = 0; lane < 32; ++lane)
      in[2 * lane] = numbers[std::min(lane, numbers.size() - 1)];
    Machine machine(text);
    const float *const got = machine.buffer(out);
    machine.run("k", {1, 1, 1}, {32, 1, 1},
                {reinterpret_cast<uint64_t>(machine.buffer(in)), reinterpret_cast<uint64_t>(got)});
    EXPECT_EQ(machine.found(), std::vector<std::string>());
    const uint32_t bits = std::isnan(want) ? 0x7fffffff : std::bit_cast<uint32_t>(want);
    for (size_t lane = 0; lane < 32; ++lane)
      EXPECT_EQ(std::bit_cast<uint32_t>(got[2 * lane]), bits) << operation << " " << lane;
  };
  expect("max", {1, -7, 3}, 3);
  expect("min", {1, -7, 3}, -7);
  expect("max.abs", {1, -7, 3}, 7);
  expect("min.abs", {1, -7, 3}, 1);
  expect("max", {-0.0f, 0, -0.0f}, 0);
  expect("min", {0, -0.0f, 0}, -0.0f);
  expect("max", {none, 2, none}, 2);
  expect("max.NaN", {2, none, 5}, none);
  expect("min.abs.NaN", {none, -2, 5}, none);
  expect("min", {none}, none);
  expect("min", {-infinite, none}, -infinite);
}

} // namespace kiln::simulator::test
