// Comparisons and selection.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
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

/// A half or bf16 word as a number; denormals are 0 when `flush`.
static float narrow(uint64_t bits, bool isBf16, bool flush) {
  const int mantissaBits = isBf16 ? 7 : 10, bias = isBf16 ? 127 : 15;
  const auto mantissa = static_cast<int>(bits & ((1u << mantissaBits) - 1));
  const int exponent = static_cast<int>(bits >> mantissaBits) & (2 * bias + 1);
  float value = std::ldexp(static_cast<float>(mantissa + (exponent ? 1 << mantissaBits : 0)),
                           std::max(exponent, 1) - bias - mantissaBits);
  if (exponent == 2 * bias + 1)
    value = mantissa ? NAN : INFINITY;
  else if (exponent == 0 && flush)
    value = 0;
  return bits & 0x8000 ? -value : value;
}

/// Zeros, denormals, ones, infinities and NaN of both narrow formats; some are other numbers in the other format.
static const Column narrows = {0x0000, 0x8000, 0x0001, 0x8001, 0x3c00, 0xbc00, 0x3f80, 0x7c00, 0xff80, 0x7fff};

/// The pairs (a, b) and (b, a) in %x and %y: the high halves have the results of the low ones with a and b
/// exchanged.
static const std::string pairs = "{ .reg .b32 %x, %y; .reg .pred %p, %o; mov.b32 %x, {%a, %b}; mov.b32 %y, {%b, %a};\n";

// setp on packed floats gives a predicate for each half.
TEST(CompareTest, HalvesOfPackedFloats) {
  for (const std::string type : {"f16x2", "ftz.f16x2", "bf16x2"}) {
    const auto below = [&](uint64_t a, uint64_t b) {
      const bool isBf16 = type == "bf16x2", flush = type == "ftz.f16x2";
      return narrow(a, isBf16, flush) < narrow(b, isBf16, flush);
    };
    expectEach(pairs + "setp.lt." + type + " %d|%p, %x, %y; }", "pred", {"b16", "b16"}, narrows,
               [&](const Column &r) { return below(r[0], r[1]); });
    expectEach(pairs + "setp.lt." + type + " %p|%d, %x, %y; }", "pred", {"b16", "b16"}, narrows,
               [&](const Column &r) { return below(r[1], r[0]); });
  }
}

// A third operand joins the predicate of each half.
TEST(CompareTest, JoinsHalvesOfPackedFloats) {
  for (const bool other : {false, true})
    expectEach(fmt::format("{}setp.eq.u32 %o, {}, 1;\nsetp.lt.xor.f16x2 %p|%d, %x, %y, !%o; }}", pairs, other ? 1 : 0),
               "pred", {"b16", "b16"}, narrows,
               [&](const Column &r) { return (narrow(r[1], false, false) < narrow(r[0], false, false)) != !other; });
}

// set gives each half 1.0 of its type, or all ones.
TEST(CompareTest, SetsHalvesOfPackedFloats) {
  for (const bool isBf16 : {false, true})
    for (const bool toFloat : {false, true}) {
      const std::string type = isBf16 ? "bf16x2" : "f16x2";
      const uint64_t truth = !toFloat ? 0xffff : isBf16 ? 0x3f80 : 0x3c00;
      expectEach(fmt::format("{}set.geu.{}.{} %d, %x, %y; }}", pairs, toFloat ? type : "u32", type), "b32",
                 {"b16", "b16"}, narrows, [&](const Column &r) {
                   const float a = narrow(r[0], isBf16, false), b = narrow(r[1], isBf16, false);
                   return (a < b ? 0 : truth) | (b < a ? 0 : truth) << 16;
                 });
    }
}

// set to 16 bits, and with a third operand.
TEST(CompareTest, SetsSixteenBits) {
  for (const auto &[type, truth] : {std::pair("f16", 0x3c00), std::pair("bf16", 0x3f80), std::pair("s16", 0xffff)}) {
    const bool isBf16 = type == std::string("bf16");
    expectEach(fmt::format("set.gt.and.{}.{} %d, %a, %b, %c;", type, isBf16 ? "bf16" : "f16"), "b16",
               {"b16", "b16", "pred"}, narrows, [&](const Column &r) {
                 return narrow(r[0], isBf16, false) > narrow(r[1], isBf16, false) && r[2] ? truth : 0;
               });
  }
}

// Denormal halves compare as zeros with .ftz alone.
TEST(CompareTest, FlushesHalves) {
  for (const bool flush : {false, true})
    expectEach(fmt::format("setp.eq{}.f16 %d, %a, %b;", flush ? ".ftz" : ""), "pred", {"b16", "b16"}, narrows,
               [&](const Column &r) { return narrow(r[0], false, flush) == narrow(r[1], false, flush); });
}

// selp selects the first operand if the predicate is true.
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
