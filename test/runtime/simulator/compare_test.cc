// Comparisons and selection.

#include "test/runtime/simulator/machine.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace kiln::simulator::test {

static float single(uint64_t word) { return std::bit_cast<float>(static_cast<uint32_t>(word)); }

struct Ordering {
  const char *name;
  bool (*holds)(int sign); // of a − b: −1, 0, 1
};
static constexpr Ordering orderings[] = {{"eq", [](int s) { return s == 0; }}, {"ne", [](int s) { return s != 0; }},
                                         {"lt", [](int s) { return s < 0; }},  {"le", [](int s) { return s <= 0; }},
                                         {"gt", [](int s) { return s > 0; }},  {"ge", [](int s) { return s >= 0; }}};

// Integers compare by their type's sign.
TEST(CompareTest, IntegersBySign) {
  for (const Ordering &ordering : orderings) {
    expectEach(fmt::format("setp.{}.s32 %d, %a, %b;", ordering.name), "pred", {"b32", "b32"}, words32,
               [&](const Column &r) {
                 const auto a = static_cast<int32_t>(r[0]), b = static_cast<int32_t>(r[1]);
                 return ordering.holds(a < b ? -1 : a > b);
               });
    expectEach(fmt::format("setp.{}.u64 %d, %a, %b;", ordering.name), "pred", {"b64", "b64"}, words64,
               [&](const Column &r) { return ordering.holds(r[0] < r[1] ? -1 : r[0] > r[1]); });
  }
}

// With NaN an ordered comparison is false and one with `u` true.
TEST(CompareTest, FloatsWithNaN) {
  for (const Ordering &ordering : orderings)
    for (const bool unordered : {false, true})
      expectEach(fmt::format("setp.{}{}.f32 %d, %a, %b;", ordering.name, unordered ? "u" : ""), "pred", {"b32", "b32"},
                 floats32, [&](const Column &r) -> uint64_t {
                   const float a = single(r[0]), b = single(r[1]);
                   return std::isnan(a) || std::isnan(b) ? unordered : ordering.holds(a < b ? -1 : a > b);
                 });
}

// The second result of setp is the opposite, and a third operand joins both.
TEST(CompareTest, TwoResultsAndAJoin) {
  expectEach("{ .reg .pred %p, %q; setp.lt.and.s32 %p|%q, %a, %b, %c; and.pred %d, %p, %q; }", "pred",
             {"b32", "b32", "pred"}, {0, 1, 2}, [](const Column &) { return 0; });
  expectEach("{ .reg .pred %p; setp.lt.and.s32 %p|%d, %a, %b, !%c; }", "pred", {"b32", "b32", "pred"}, {0, 1},
             [](const Column &r) { return !(r[0] < r[1]) && r[2] == 0; });
}

// selp takes the first where the predicate holds.
TEST(CompareTest, Selects) {
  expectEach("selp.b32 %d, %a, %b, %c;", "b32", {"b32", "b32", "pred"}, {0, 5, 9},
             [](const Column &r) { return r[2] ? r[0] : r[1]; });
  expectEach("selp.b32 %d, %a, 7, !%b;", "b32", {"b32", "pred"}, {0, 5, 9},
             [](const Column &r) { return r[1] ? 7 : r[0]; });
}

// set gives all ones, or 1.0.
TEST(CompareTest, SetsWords) {
  expectEach("set.lt.u32.s32 %d, %a, %b;", "b32", {"b32", "b32"}, {0, 1, 0xffffffff},
             [](const Column &r) { return static_cast<int32_t>(r[0]) < static_cast<int32_t>(r[1]) ? 0xffffffff : 0; });
  expectEach("set.lt.f32.s32 %d, %a, %b;", "b32", {"b32", "b32"}, {0, 1, 0xffffffff},
             [](const Column &r) { return static_cast<int32_t>(r[0]) < static_cast<int32_t>(r[1]) ? 0x3f800000 : 0; });
}

// testp sorts floats into their kinds.
TEST(CompareTest, KindsOfFloats) {
  expectEach("testp.subnormal.f32 %d, %a;", "pred", {"b32"}, floats32,
             [](const Column &r) { return std::fpclassify(single(r[0])) == FP_SUBNORMAL; });
  expectEach("testp.finite.f32 %d, %a;", "pred", {"b32"}, floats32,
             [](const Column &r) { return std::isfinite(single(r[0])); });
}

} // namespace kiln::simulator::test
