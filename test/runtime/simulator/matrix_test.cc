// Matrix instructions compared with plain products of small integers, which every type holds, so that a misplaced
// element is an exact inequality. The layouts are written here once more from the ISA's text: lane by lane, register by
// register.

#include "test/runtime/simulator/machine.h"

#include <bit>
#include <fmt/format.h>

namespace kiln::simulator::test {

/// f16, bf16, tf32 (as f32) or s8 bits of a small integer.
static uint32_t bitsOf(const std::string &type, int value) {
  if (type == "s8")
    return static_cast<uint8_t>(value);
  const uint32_t single = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == "tf32")
    return single;
  if (type == "bf16")
    return single >> 16;
  return value == 0 ? 0 : (single >> 16 & 0x8000) | (((single >> 23 & 255) - 112) << 10) | (single >> 13 & 1023);
}

struct Product {
  std::string type;
  int K, bits;
};

// mma.sync of every type: the sum of products, added to C.
TEST(MmaTest, PlacesAndAddsEveryElement) {
  for (const Product &p :
       {Product{"f16", 16, 16}, Product{"f16", 8, 16}, Product{"bf16", 16, 16}, Product{"tf32", 8, 32},
        Product{"tf32", 4, 32}, Product{"s8", 32, 8}, Product{"s8", 16, 8}}) {
    const int perWord = 32 / p.bits, wordsA = 16 * p.K / 32 / perWord, wordsB = 8 * p.K / 32 / perWord;
    const auto a = [](int m, int k) { return (m * 3 + k * 5) % 7 - 3; };
    const auto b = [](int k, int n) { return (k * 2 + n * 7) % 5 - 2; };
    const auto c = [](int m, int n) { return m * 8 + n; };
    std::vector<uint32_t> fragmentA(static_cast<size_t>(32 * wordsA)), fragmentB(static_cast<size_t>(32 * wordsB)),
        fragmentC(32 * 4);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < wordsA * perWord; ++i) { // a_i of the ISA: two row groups, then the next columns
        const int word = i / perWord;
        const int row = lane / 4 + (word % 2 ? 8 : 0),
                  column = lane % 4 * perWord + i % perWord + (word >= 2 ? 4 * perWord : 0);
        fragmentA[static_cast<size_t>(lane * wordsA + word)] |= bitsOf(p.type, a(row, column))
                                                                << (i % perWord * p.bits % 32);
      }
      for (int i = 0; i < wordsB * perWord; ++i) {
        const int word = i / perWord;
        fragmentB[static_cast<size_t>(lane * wordsB + word)] |=
            bitsOf(p.type, b(lane % 4 * perWord + i % perWord + word * 4 * perWord, lane / 4))
            << (i % perWord * p.bits % 32);
      }
      for (int i = 0; i < 4; ++i) {
        const int value = c(lane / 4 + (i >= 2 ? 8 : 0), lane % 4 * 2 + i % 2);
        fragmentC[static_cast<size_t>(lane * 4 + i)] =
            p.type == "s8" ? static_cast<uint32_t>(value) : std::bit_cast<uint32_t>(static_cast<float>(value));
      }
    }
    std::string body, listA, listB;
    for (int i = 0; i < wordsA; ++i) {
      body += fmt::format("mad.wide.u32 %at, %t, {}, %p0;\nld.global.u32 %a{}, [%at+{}];\n", 4 * wordsA, i, 4 * i);
      listA += fmt::format("{}%a{}", i ? ", " : "", i);
    }
    for (int i = 0; i < wordsB; ++i) {
      body += fmt::format("mad.wide.u32 %at, %t, {}, %p1;\nld.global.u32 %b{}, [%at+{}];\n", 4 * wordsB, i, 4 * i);
      listB += fmt::format("{}%b{}", i ? ", " : "", i);
    }
    const std::string sums = p.type == "s8" ? "s32" : "f32";
    body += fmt::format("mad.wide.u32 %at, %t, 16, %p2;\nld.global.v4.u32 {{%c0, %c1, %c2, %c3}}, [%at];\n"
                        "mma.sync.aligned.m16n8k{}.row.col.{}.{}.{}.{} {{%c0, %c1, %c2, %c3}}, {{{}}}, {{{}}}, {{%c0, "
                        "%c1, %c2, %c3}};\n"
                        "st.global.v4.u32 [%at], {{%c0, %c1, %c2, %c3}};",
                        p.K, sums, p.type, p.type, sums, listA, listB);
    Machine machine(kernel(3, ".reg .b32 %a<4>, %b<2>, %c<4>; .reg .b64 %at;", body));
    const uint32_t *out = machine.buffer(fragmentC);
    machine.run("k", {1, 1, 1}, {32, 1, 1},
                {address(machine.buffer(fragmentA)), address(machine.buffer(fragmentB)), address(out)});
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int m = lane / 4 + (i >= 2 ? 8 : 0), n = lane % 4 * 2 + i % 2;
        int want = c(m, n);
        for (int k = 0; k < p.K; ++k)
          want += a(m, k) * b(k, n);
        const uint32_t word = out[lane * 4 + i];
        EXPECT_EQ(p.type == "s8" ? static_cast<int32_t>(word) : static_cast<int>(std::bit_cast<float>(word)), want)
            << p.type << " K=" << p.K << " (" << m << ", " << n << ")";
      }
  }
}

// ldmatrix gives lane l the elements 2 (l % 4) and the next of row l / 4 of each matrix, or of column l / 4 with
// .trans; the rows' addresses are from lanes 8 i … 8 i + 7.
TEST(LdmatrixTest, RowsAndColumns) {
  for (const int count : {1, 2, 4})
    for (const bool turned : {false, true}) {
      std::string list, stores;
      for (int i = 0; i < count; ++i) {
        list += fmt::format("{}%r{}", i ? ", " : "", i);
        stores += fmt::format("st.global.u32 [%at+{}], %r{};\n", 4 * i, i);
      }
      // Element e of row r is 16 r + e. Rows are 16 bytes apart, last row first, so that addresses matter.
      Machine machine(kernel(
          1, ".shared .align 16 .b16 rows[256];\n.reg .b32 %r<4>, %s<4>; .reg .b16 %h; .reg .b64 %at; .reg .pred %q;",
          "mov.u32 %s0, rows;\nmov.u32 %s1, 0;\nfill:\nmad.lo.u32 %s2, %t, 8, %s1;\nmad.lo.u32 %s3, %s2, 2, %s0;\n"
          "mad.lo.u32 %s2, %t, 16, %s1;\ncvt.u16.u32 %h, %s2;\nst.shared.u16 [%s3], %h;\nadd.u32 %s1, %s1, 1;\n"
          "setp.lt.u32 %q, %s1, 8;\n@%q bra fill;\nbar.sync 0;\nsub.u32 %s1, 31, %t;\nmad.lo.u32 %s1, %s1, 16, %s0;\n" +
              fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {{{}}}, [%s1];\n", count, turned ? ".trans" : "",
                          list) +
              "mad.wide.u32 %at, %t, 16, %p0;\n" + stores));
      const uint32_t *out = machine.buffer(std::vector<uint32_t>(128));
      machine.run("k", {1, 1, 1}, {32, 1, 1}, {address(out)});
      EXPECT_EQ(machine.found(), std::vector<std::string>{});
      for (int matrix = 0; matrix < count; ++matrix)
        for (int lane = 0; lane < 32; ++lane)
          for (int half = 0; half < 2; ++half) {
            const int major = lane / 4, minor = lane % 4 * 2 + half;
            const int row = turned ? minor : major, column = turned ? major : minor;
            EXPECT_EQ(out[lane * 4 + matrix] >> (16 * half) & 0xffff,
                      static_cast<uint32_t>(16 * (31 - (8 * matrix + row)) + column))
                << "matrix " << matrix << " lane " << lane;
          }
    }
}

/// Each lane's accumulators {%c0, %c1, %c2, %c3} of one product of tf32 whose operands all have these bits, added to 2,
/// which is in a register of this name.
static std::vector<float> sumsOf(const std::string &a, const std::string &b, const std::string &two) {
  Machine machine(kernel(1, ".reg .b32 %a, %b; .reg .f32 %c<5>; .reg .b64 %at;",
                         fmt::format("mov.b32 %a, {0};\nmov.b32 %b, {1};\nmov.f32 {2}, 0f40000000;\n"
                                     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{%c0, %c1, %c2, %c3}}, "
                                     "{{%a, %a, %a, %a}}, {{%b, %b}}, {{{2}, {2}, {2}, {2}}};\n"
                                     "mad.wide.u32 %at, %t, 16, %p0;\nst.global.v4.f32 [%at], {{%c0, %c1, %c2, %c3}};",
                                     a, b, two)));
  const float *out = machine.buffer(std::vector<float>(128));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {address(out)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  return {out, out + 128};
}

// The lowest 13 bits of a tf32 are ignored, also in rounding: kernels pass f32 unchanged.
TEST(MmaTest, CutsOffWhatIsBelowTf32) {
  EXPECT_EQ(sumsOf("0x3f801fff", "0xc0001fff", "%c4"), std::vector<float>(128, -14)); // 2 − 8 · 1 · 2
}

// wmma of integers wraps, or clamps with .satfinite.
TEST(WmmaTest, SumsSaturateWhenAsked) {
  for (const bool saturates : {false, true}) {
    const std::string sums = "{%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}";
    std::string body;
    for (int i = 0; i < 4; ++i)
      body += fmt::format("mov.b32 %r{}, 0x01010101;\n", i);
    for (int i = 4; i < 12; ++i)
      body += fmt::format("mov.b32 %r{}, 0x7fffffff;\n", i);
    Machine machine(kernel(1, ".reg .b32 %r<12>;\n",
                           body + "wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32" +
                               (saturates ? ".satfinite " : " ") + sums + ", {%r0, %r1}, {%r2, %r3}, " + sums +
                               ";\nst.global.b32 [%p0], %r4;"));
    uint32_t *got = machine.buffer<uint32_t>({0});
    machine.run("k", {1, 1, 1}, {32, 1, 1}, {reinterpret_cast<uint64_t>(got)});
    EXPECT_EQ(*got, saturates ? 0x7fffffffu : 0x8000000fu);
  }
}

// Operands are read before anything is written, whichever registers they share.
TEST(MmaTest, WritesRegistersThatItReads) {
  EXPECT_EQ(sumsOf("0x3f800000", "0x3f800000", "%c0"), std::vector<float>(128, 10)); // 2 + 8 · 1 · 1
}

// A warp that is not whole is found.
TEST(MmaTest, NeedsTheWholeWarp) {
  Machine machine(kernel(1, ".reg .b32 %r<4>; .reg .pred %q;",
                         "mov.u32 %r0, 0;\nsetp.lt.u32 %q, %t, 9;\n@%q "
                         "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%r0, %r1, %r2, %r3}, "
                         "{%r0, %r0}, {%r0}, {%r0, %r0, %r0, %r0};"));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {0});
  ASSERT_EQ(machine.found().size(), 1u);
  EXPECT_EQ(machine.found()[0], "barrier: only lanes 0x1ff execute an instruction that takes the whole warp");
}

} // namespace kiln::simulator::test
