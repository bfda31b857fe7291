// mma.sync in every shape, compared with plain sums of products of small integers. The layouts are written here once
// more from the ISA's text.

#include "test/runtime/simulator/machine.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace kiln::simulator::test {

namespace {
struct Product {
  std::string a, b; // types
  int M, K, bits;
  std::string sums = "s32", modifiers = ""; // of C and D; behind the types
  int target = 80;
  std::string version = "8.0";

  int wordBits() const { return bits == 64 ? 64 : 32; }
  int perWord() const { return wordBits() / bits; }
  int wordsOf(int rows) const { return rows * K / 32 / perWord(); }
};
} // namespace

/// The bits of a whole number from −8 to 7 in a type.
static uint64_t bitsOf(const std::string &type, int value) {
  if (type == "f64")
    return std::bit_cast<uint64_t>(static_cast<double>(value));
  if (type == "e4m3" || type == "e5m2") {
    const int mantissa = type == "e4m3" ? 3 : 2, magnitude = std::abs(value);
    const int exponent = magnitude ? 31 - std::countl_zero(static_cast<unsigned>(magnitude)) : 0;
    const int bias = type == "e4m3" ? 7 : 15;
    const int fraction = (magnitude << mantissa >> exponent) - (1 << mantissa);
    return magnitude ? static_cast<uint64_t>((value < 0) << 7 | (exponent + bias) << mantissa | fraction) : 0;
  }
  const int bits = type.back() - '0';
  return static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
}

/// A number that the type has.
static int numberAt(const std::string &type, int i) {
  if (type == "b1")
    return i * 7 % 5 % 2;
  if (type == "e5m2") // two bits behind the leading one
    return i * 3 % 9 - 4;
  return type[0] == 'u' ? i * 5 % 8 : i * 5 % 15 - 7;
}

/// The matrices' fragments, word by word of each lane.
static std::vector<uint64_t> fragment(const Product &p, const std::string &type, int rows,
                                      const std::function<int(int row, int k)> &element) {
  const int words = p.wordsOf(rows);
  std::vector<uint64_t> all(static_cast<size_t>(32 * words));
  for (int lane = 0; lane < 32; ++lane)
    for (int word = 0; word < words; ++word)
      for (int i = 0; i < p.perWord(); ++i) {
        const bool lower = rows == 16 && word % 2 == 1; // the rows from 8 on
        const int row = lane / 4 + (lower ? 8 : 0), block = rows == 16 ? word / 2 : word;
        const int k = (lane % 4 + 4 * block) * p.perWord() + i;
        all[static_cast<size_t>(lane) * static_cast<size_t>(words) + static_cast<size_t>(word)] |=
            bitsOf(type, element(row, k)) << (i * p.bits);
      }
  return all;
}

static std::string loads(const char *name, int words, int bits, int pointer) {
  std::string text;
  for (int i = 0; i < words; ++i)
    text += fmt::format("mad.wide.u32 %at, %t, {}, %p{};\nld.global.b64 %w, [%at+{}];\n{} %{}{}, %w;\n", 8 * words,
                        pointer, 8 * i, bits == 64 ? "mov.b64" : "cvt.u32.u64", name, i);
  return text;
}

static std::string list(const char *name, int words) {
  std::string text;
  for (int i = 0; i < words; ++i)
    text += fmt::format("{}%{}{}", i ? ", " : "", name, i);
  return "{" + text + "}";
}

/// Runs the product on C = 3 everywhere, or on another f32; returns D's words, lane by lane.
static std::vector<uint64_t> run(const Product &p, const std::vector<uint64_t> &a, const std::vector<uint64_t> &b,
                                 float c = 3) {
  const bool packed = p.sums == "f16";
  const int sums = p.M / (packed ? 8 : 4);
  const std::string three = p.sums == "s32"   ? "3"
                            : p.sums == "f32" ? fmt::format("0f{:08X}", std::bit_cast<uint32_t>(c))
                            : packed          ? "0x42004200"
                                              : "0d4008000000000000";
  const int sumBits = p.sums == "f64" ? 64 : 32;
  std::string body = loads("a", p.wordsOf(p.M), p.wordBits(), 0) + loads("b", p.wordsOf(8), p.wordBits(), 1);
  for (int i = 0; i < sums; ++i)
    body += fmt::format("mov.b{} %c{}, {};\n", sumBits, i, three);
  body +=
      fmt::format("mma.sync.aligned.m{}n8k{}.row.col.{}.{}.{}.{}{} {}, {}, {}, {};\nmad.wide.u32 %at, %t, {}, %p2;\n",
                  p.M, p.K, p.sums, p.a, p.b, p.sums, p.modifiers, list("c", sums), list("a", p.wordsOf(p.M)),
                  list("b", p.wordsOf(8)), list("c", sums), 8 * sums);
  for (int i = 0; i < sums; ++i)
    body +=
        fmt::format("{} %w, %c{};\nst.global.b64 [%at+{}], %w;\n", sumBits == 64 ? "mov.b64" : "cvt.u64.u32", i, 8 * i);
  std::string text = kernel(
      3, fmt::format(".reg .b{0} %a<8>, %b<4>; .reg .b{1} %c<4>; .reg .b64 %at, %w;", p.wordBits(), sumBits), body);
  text = fmt::format(".version {}\n.target sm_{}\n", p.version, p.target) + text.substr(text.find(".address_size"));
  Machine machine(text);
  const uint64_t *out = machine.buffer(std::vector<uint64_t>(static_cast<size_t>(32 * sums)));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {address(machine.buffer(a)), address(machine.buffer(b)), address(out)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  return {out, out + 32 * sums};
}

/// A normal f16, or 0.
static double numberOfHalf(uint16_t bits) {
  const double magnitude = bits & 0x7fff ? std::ldexp(1024 + (bits & 1023), (bits >> 10 & 31) - 25) : 0;
  return bits & 0x8000 ? -magnitude : magnitude;
}

static double numberIn(const Product &p, const std::vector<uint64_t> &words, int lane, int i) {
  const auto word = [&](int at) {
    return words[static_cast<size_t>(lane) * static_cast<size_t>(p.M / (p.sums == "f16" ? 8 : 4)) +
                 static_cast<size_t>(at)];
  };
  if (p.sums == "f64")
    return std::bit_cast<double>(word(i));
  if (p.sums == "f32")
    return std::bit_cast<float>(static_cast<uint32_t>(word(i)));
  if (p.sums == "f16")
    return numberOfHalf(static_cast<uint16_t>(word(i / 2) >> (16 * (i % 2))));
  return static_cast<int32_t>(word(i));
}

static void check(const Product &p) {
  const auto a = [&](int m, int k) { return numberAt(p.a, m * 3 + k); };
  const auto b = [&](int n, int k) { return numberAt(p.b, n + 2 * k); };
  const std::vector<uint64_t> d = run(p, fragment(p, p.a, p.M, a), fragment(p, p.b, 8, b));
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < p.M / 4; ++i) {
      const int m = lane / 4 + (i >= 2 ? 8 : 0), n = lane % 4 * 2 + i % 2;
      int want = 3;
      for (int k = 0; k < p.K; ++k)
        want += p.modifiers == ".xor.popc" ? a(m, k) ^ b(n, k) : a(m, k) * b(n, k);
      EXPECT_EQ(numberIn(p, d, lane, i), want) << p.a << " m" << p.M << "k" << p.K << " " << m << " " << n;
    }
}

// 8-bit floats of both kinds, summed in f32 and in f16.
TEST(MmaShapesTest, EighthFloats) {
  for (const std::string sums : {"f32", "f16"})
    for (const int K : {16, 32}) {
      check({"e4m3", "e5m2", 16, K, 8, sums, "", 120, "8.7"});
      check({"e5m2", "e4m3", 16, K, 8, sums, "", 89, "8.7"});
    }
}

// Tensor cores that multiply 8-bit floats directly keep 13 bits of a sum after the leading one of its largest term.
TEST(MmaShapesTest, CoarseSums) {
  const auto sum = [](int target, float c) { // 1 · 1 + c
    const Product p{"e4m3", "e4m3", 16, 32, 8, "f32", "", target, "8.7"};
    const auto one = [](int, int k) { return k == 0 ? 1 : 0; };
    return numberIn(p, run(p, fragment(p, p.a, p.M, one), fragment(p, p.b, 8, one), c), 5, 2);
  };
  for (const int target : {89, 120}) {
    EXPECT_EQ(sum(target, 0x1p-13f), 1 + 0x1p-13f);
    EXPECT_EQ(sum(target, 0x1p-13f + 0x1p-20f), 1 + 0x1p-13f);
    EXPECT_EQ(sum(target, 0x1p-14f), 1);
    EXPECT_EQ(sum(target, -0x1p-14f), 1); // towards zero, each term by itself
    EXPECT_EQ(sum(target, 0x1p14f + 2), 0x1p14f + 2);
    EXPECT_EQ(sum(target, std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  }
  EXPECT_EQ(sum(90, 0x1p-20f), 1 + 0x1p-20f);
}

// Bytes in eight rows, and numbers of four bits, signed and not.
TEST(MmaShapesTest, Integers) {
  check({"s8", "u8", 8, 16, 8});
  for (const auto &[a, b] : std::vector<std::pair<std::string, std::string>>{{"s4", "u4"}, {"u4", "s4"}}) {
    check({a, b, 8, 32, 4});
    check({a, b, 16, 32, 4});
    check({a, b, 16, 64, 4});
  }
}

// Single bits: how many both have, or one alone.
TEST(MmaShapesTest, Bits) {
  for (const std::string modifiers : {".xor.popc", ".and.popc"}) {
    check({"b1", "b1", 8, 128, 1, "s32", modifiers});
    check({"b1", "b1", 16, 128, 1, "s32", modifiers});
    check({"b1", "b1", 16, 256, 1, "s32", modifiers});
  }
}

// Doubles.
TEST(MmaShapesTest, Doubles) {
  check({"f64", "f64", 8, 4, 64, "f64"});
  for (const int K : {4, 8, 16})
    check({"f64", "f64", 16, K, 64, "f64", "", 90});
}

} // namespace kiln::simulator::test
