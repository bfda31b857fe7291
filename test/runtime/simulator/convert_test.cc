// Conversions between all types, at their ends.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace kiln::simulator::test {

static float single(uint64_t word) { return std::bit_cast<float>(static_cast<uint32_t>(word)); }
static uint64_t word(float value) { return std::bit_cast<uint32_t>(value); }

// Integers widen by their sign and narrow by their low bits.
TEST(ConvertTest, IntegersWidenByTheirSign) {
  expectEach("cvt.s64.s32 %d, %a;", "b64", {"b32"}, words32,
             [](const Column &r) { return static_cast<uint64_t>(int64_t{static_cast<int32_t>(r[0])}); });
  expectEach("cvt.u64.u32 %d, %a;", "b64", {"b32"}, words32, [](const Column &r) { return r[0]; });
  expectEach("cvt.u32.u64 %d, %a;", "b32", {"b64"}, words64, [](const Column &r) { return r[0] & 0xffffffff; });
  expectEach("cvt.s32.s8 %d, %a;", "b32", {"b32"}, words32,
             [](const Column &r) { return static_cast<uint32_t>(int32_t{static_cast<int8_t>(r[0])}); });
  expectEach("cvt.u16.u32 %d, %a;", "b16", {"b32"}, words32, [](const Column &r) { return r[0] & 0xffff; });
}

// A result that is narrower than its register fills it, by its sign.
TEST(ConvertTest, NarrowResultsFillTheirRegisters) {
  const auto low = [](const Column &r) { return static_cast<int8_t>(r[0]); };
  expectEach("cvt.s8.s32 %d, %a;", "b16", {"b32"}, words32,
             [&](const Column &r) { return static_cast<uint16_t>(int16_t{low(r)}); });
  expectEach("cvt.s8.s32 %d, %a;", "b32", {"b32"}, words32,
             [&](const Column &r) { return static_cast<uint32_t>(int32_t{low(r)}); });
  expectEach("cvt.s8.s64 %d, %a;", "b64", {"b64"}, words64,
             [&](const Column &r) { return static_cast<uint64_t>(int64_t{low(r)}); });
  expectEach("cvt.u8.s32 %d, %a;", "b32", {"b32"}, words32, [](const Column &r) { return r[0] & 0xff; });
}

// `.sat` clamps to the range of the result.
TEST(ConvertTest, IntegersSaturateWhenAsked) {
  expectEach("cvt.sat.u8.s32 %d, %a;", "b32", {"b32"}, words32, [](const Column &r) {
    return static_cast<uint64_t>(std::min(std::max(static_cast<int32_t>(r[0]), 0), 255));
  });
  expectEach("cvt.sat.s32.u32 %d, %a;", "b32", {"b32"}, words32,
             [](const Column &r) { return std::min<uint64_t>(r[0], 0x7fffffff); });
}

// Integers become the nearest float, rounded once: 2^24 + 1 and 2^63 + 1 are between two.
TEST(ConvertTest, IntegersToFloatsRoundOnce) {
  expectEach("cvt.rn.f32.s32 %d, %a;", "b32", {"b32"}, words32,
             [](const Column &r) { return word(static_cast<float>(static_cast<int32_t>(r[0]))); });
  const Column wide = {0,
                       1,
                       (1 << 24) + 1,
                       (uint64_t{1} << 40) + (1 << 16) + 1,
                       (uint64_t{1} << 63) + 1,
                       ~uint64_t{0},
                       0x8000008000000001};
  expectEach("cvt.rn.f32.u64 %d, %a;", "b32", {"b64"}, wide,
             [](const Column &r) { return word(static_cast<float>(r[0])); });
  expectEach("cvt.rn.f32.s64 %d, %a;", "b32", {"b64"}, wide,
             [](const Column &r) { return word(static_cast<float>(static_cast<int64_t>(r[0]))); });
}

// Floats become integers in the instruction's rounding mode; values outside saturate, NaN is 0.
TEST(ConvertTest, FloatsToIntegersSaturate) {
  struct Mode {
    const char *name;
    float (*round)(float);
  };
  Column values = floats32;
  for (const float value : {0.5f, -0.5f, 2.5f, -2.5f, 2147483648.0f, -2147483904.0f, 4294967296.0f, 255.5f})
    values.push_back(word(value));
  for (const Mode mode :
       {Mode{"rni", [](float x) { return std::nearbyint(x); }}, Mode{"rzi", [](float x) { return std::trunc(x); }},
        Mode{"rmi", [](float x) { return std::floor(x); }}, Mode{"rpi", [](float x) { return std::ceil(x); }}}) {
    expectEach(fmt::format("cvt.{}.s32.f32 %d, %a;", mode.name), "b32", {"b32"}, values,
               [&](const Column &r) -> uint64_t {
                 const double x = mode.round(single(r[0]));
                 if (std::isnan(x))
                   return 0;
                 return static_cast<uint32_t>(x >= 2147483647.0    ? INT32_MAX
                                              : x <= -2147483648.0 ? INT32_MIN
                                                                   : static_cast<int32_t>(x));
               });
    expectEach(fmt::format("cvt.{}.u32.f32 %d, %a;", mode.name), "b32", {"b32"}, values,
               [&](const Column &r) -> uint64_t {
                 const double x = mode.round(single(r[0]));
                 return std::isnan(x) || x <= 0 ? 0 : x >= 4294967295.0 ? 0xffffffff : static_cast<uint64_t>(x);
               });
  }
}

// Every half converts to f32 and back; every f32 between two halves is rounded to the nearer, ties to the even one.
TEST(ConvertTest, HalvesAndBack) {
  Column halves;
  for (uint64_t bits = 0; bits < 0x10000; bits += 37)
    if ((bits & 0x7fff) <= 0x7c00)
      halves.push_back(bits);
  expectEach("{ .reg .b32 %x; cvt.f32.f16 %x, %a; cvt.rn.f16.f32 %d, %x; }", "b16", {"b16"}, halves,
             [](const Column &r) { return r[0]; });
  expectEach("{ .reg .b32 %x; cvt.f32.bf16 %x, %a; cvt.rn.bf16.f32 %d, %x; }", "b16", {"b16"}, halves,
             [](const Column &r) { return r[0]; });
  // 1 + 2^-11 is half way from 1 to the next half, 1 + 3 · 2^-11 from that to the one after.
  expectEach(
      "cvt.rn.f16.f32 %d, %a;", "b16", {"b32"},
      {word(1 + 0x1p-11f), word(1 + 3 * 0x1p-11f), word(65519.0f), word(65520.0f)}, [](const Column &r) {
        return single(r[0]) < 1.001f ? 0x3c00u : single(r[0]) < 2 ? 0x3c02u : single(r[0]) < 65520 ? 0x7bffu : 0x7c00u;
      });
  expectEach("cvt.rz.f16.f32 %d, %a;", "b16", {"b32"}, {word(1 + 3 * 0x1p-11f), word(1e6f)},
             [](const Column &r) { return single(r[0]) < 2 ? 0x3c01u : 0x7bffu; });
}

// .satfinite gives the largest number of the sign where the result would be infinite; NaN stays NaN.
TEST(ConvertTest, NarrowFloatsStayFiniteWhenAsked) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Column values = {word(1.0f),     word(65519.0f),  word(65520.0f),      word(-1e6f),
                         word(infinity), word(-infinity), word(3.4028235e38f), word(std::nanf(""))};
  for (const auto &[type, one, most, nan, above] :
       {std::tuple{"f16", 0x3c00u, 0x7bffu, 0x7fffu, 65520.0f}, {"bf16", 0x3f80u, 0x7f7fu, 0x7fffu, 3.4e38f}})
    expectEach(fmt::format("cvt.rn.satfinite.{}.f32 %d, %a;", type), "b16", {"b32"},
               {values[0], values[2], values[3], values[4], values[5], values[6], values[7]},
               [&](const Column &r) -> uint64_t {
                 const float value = single(r[0]), size = std::fabs(value);
                 const uint64_t sign = value < 0 ? 0x8000 : 0;
                 if (std::isnan(value))
                   return nan;
                 if (size >= above)
                   return sign | most;
                 return value == 1 ? one : sign | (std::bit_cast<uint32_t>(size) + 0x7fff) >> 16; // bf16
               });
  expectEach("cvt.rna.satfinite.tf32.f32 %d, %a;", "b32", {"b32"}, {word(infinity), word(-infinity), word(1.0f)},
             [](const Column &r) { return std::isinf(single(r[0])) ? (r[0] & 0x80000000) | 0x7f7fe000 : r[0]; });
}

// A pair of f32 becomes a word of halves, the first one high.
TEST(ConvertTest, PairsPutTheFirstHigh) {
  expectEach("cvt.rn.f16x2.f32 %d, %a, %b;", "b32", {"b32", "b32"}, {word(1.0f), word(2.0f), word(-1.0f)},
             [](const Column &r) {
               const auto half = [](uint64_t bits) -> uint64_t {
                 return single(bits) == 1 ? 0x3c00 : single(bits) == 2 ? 0x4000 : 0xbc00;
               };
               return half(r[0]) << 16 | half(r[1]);
             });
}

// f64 to f32 in each mode.
TEST(ConvertTest, DoublesRoundInTheMode) {
  const uint64_t third = std::bit_cast<uint64_t>(1.0 / 3);
  const float below =
      std::nextafter(static_cast<float>(1.0 / 3), 0.0f) < 1.0 / 3 && static_cast<float>(1.0 / 3) > 1.0 / 3
          ? std::nextafter(static_cast<float>(1.0 / 3), 0.0f)
          : static_cast<float>(1.0 / 3);
  expectEach("cvt.rm.f32.f64 %d, %a;", "b32", {"b64"}, {third}, [&](const Column &) { return word(below); });
  expectEach("cvt.rp.f32.f64 %d, %a;", "b32", {"b64"}, {third},
             [&](const Column &) { return word(std::nextafter(below, 1.0f)); });
}

// cvt.pack clamps two words to elements and puts them below a third word's lowest bits.
TEST(ConvertTest, PacksClampedElements) {
  for (const int bits : {16, 8, 4, 2})
    for (const bool isSigned : {false, true}) {
      const bool isPair = bits == 16;
      expectEach(fmt::format("cvt.pack.sat.{}{}.s32{} %d, %a, %b{};", isSigned ? "s" : "u", bits, isPair ? "" : ".b32",
                             isPair ? "" : ", %c"),
                 "b32", {"b32", "b32", "b32"}, words32, [&](const Column &row) {
                   const int64_t most = (int64_t{1} << (bits - isSigned)) - 1, least = isSigned ? -most - 1 : 0;
                   const auto element = [&](uint64_t word) {
                     const auto number = static_cast<int32_t>(static_cast<uint32_t>(word));
                     return static_cast<uint64_t>(std::clamp<int64_t>(number, least, most)) &
                            ((uint64_t{1} << bits) - 1);
                   };
                   const uint64_t above = isPair ? 0 : row[2] << (2 * bits);
                   return (above | element(row[0]) << bits | element(row[1])) & 0xffffffff;
                 });
    }
}

// Every 8-bit float converts to half and back.
TEST(ConvertTest, EighthsAndBack) {
  Column pairs;
  for (uint64_t bits = 0; bits < 256; ++bits)
    if ((bits & 0x7f) != 0x7f && (bits & 0x7f) < 0x7c) // NaN and infinities
      pairs.push_back(bits << 8 | ((bits * 5 & 0x7f) >= 0x7c ? 0 : (bits * 5 & 0xff)));
  for (const std::string type : {"e4m3x2", "e5m2x2"})
    expectEach(fmt::format("{{ .reg .b32 %x; cvt.rn.f16x2.{0} %x, %a; cvt.rn.satfinite.{0}.f16x2 %d, %x; }}", type),
               "b16", {"b16"}, pairs, [](const Column &r) { return r[0]; });
}

} // namespace kiln::simulator::test
