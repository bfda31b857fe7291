// wgmma: every type, layout and modifier on integers that all types hold, so that any slip is an inequality.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator::test {

namespace {
/// One wgmma of a warpgroup: types as PTX spells them; K follows from A's.
struct Product {
  std::string d = "f32", a = "f16", b = "f16";
  int N = 16, swizzle = 128; // bytes; 0: none
  bool turnA = false, turnB = false, aInRegisters = false, negateA = false, negateB = false, saturates = false;
  bool keeps = true; // scale-d

  static int bytesOf(const std::string &type) { return type == "tf32" ? 4 : type.ends_with("16") ? 2 : 1; }
  int elementBytes() const { return bytesOf(a); }
  int K() const { return 32 / elementBytes(); }
  bool isInteger() const { return d == "s32"; }
  int registersOfD() const { return d == "f16" ? N / 4 : N / 2; }
};
} // namespace

// Integers from −3 to 3, or for unsigned types from 0 to 6.
static int valueA(const Product &p, int m, int k) { return (m * 3 + k * 5) % 7 - (p.a == "u8" ? 0 : 3); }
static int valueB(const Product &p, int k, int n) { return (n * 2 + k * 3 + n / 7) % 7 - (p.b == "u8" ? 0 : 3); }
static int valueD(int m, int n) { return (m + 2 * n) % 9 - 4; }

/// The bytes of a small integer in a type.
static uint32_t encoded(const std::string &type, int value) {
  const auto single = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == "f16")
    return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  if (type == "bf16")
    return single >> 16;
  if (type == "tf32")
    return single | 0x1fff; // bits that do not count
  if (type == "s8" || type == "u8")
    return static_cast<uint8_t>(value);
  // 8-bit floats: a sign, 1.m · 2^e with |value| ≤ 6
  const int size = std::abs(value), exponent = size >= 4 ? 2 : size >= 2 ? 1 : 0, fraction = size - (1 << exponent);
  const uint32_t sign = value < 0 ? 0x80 : 0;
  if (size == 0)
    return sign;
  return type == "e4m3" ? sign | static_cast<uint32_t>((exponent + 7) << 3 | fraction << (3 - exponent))
                        : sign | static_cast<uint32_t>((exponent + 15) << 2 | fraction << (2 - exponent));
}

/// The offset of element (row of M or N, k) of an operand that begins at 0: the layouts of the PTX ISA, core matrices
/// of 8 rows by 16 bytes. Distances as in `descriptor`.
static int placeOf(const Product &p, bool turned, int row, int k) {
  const int bytes = p.elementBytes();
  const auto swizzle = [&](int place) { // the 16-byte chunk changes by the number of the 128-byte row
    const int mask = p.swizzle == 128 ? 7 : p.swizzle == 64 ? 3 : p.swizzle == 32 ? 1 : 0;
    return place ^ ((place / 128 & mask) << 4);
  };
  if (!turned) {
    if (p.swizzle == 0) // core (row / 8, chunk of k): chunks lie 128 bytes apart, eights of rows 256
      return row / 8 * 256 + k * bytes / 16 * 128 + row % 8 * 16 + k * bytes % 16;
    return swizzle(row / 8 * 8 * p.swizzle + row % 8 * p.swizzle + k * bytes);
  }
  if (p.swizzle == 0) // core (eight of rows, eight of k): eights of k lie 128 bytes apart, eights of rows 256
    return row / 8 * 256 + k / 8 * 128 + k % 8 * 16 + row % 8 * bytes;
  const int perRow =
      p.swizzle / bytes; // rows of M or N that lie in a swizzled row; then eights of k, then further ones
  return swizzle(row / perRow * (16 * p.swizzle) + k / 8 * 8 * p.swizzle + k % 8 * p.swizzle + row % perRow * bytes);
}

/// The descriptor of an operand at `start` in the layout of placeOf; the kernel adds where its shared memory begins.
static uint64_t descriptor(const Product &p, bool turned, uint64_t start) {
  const auto width = static_cast<uint64_t>(p.swizzle);
  uint64_t leading = 0, stride = 0;
  if (p.swizzle == 0)
    leading = 128, stride = 256;
  else if (!turned)
    leading = 16, stride = 8 * width; // the leading one does not matter
  else
    leading = 16 * width, stride = 8 * width;
  const uint64_t mode = p.swizzle == 128 ? 1 : p.swizzle == 64 ? 2 : p.swizzle == 32 ? 3 : 0;
  return start >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | mode << 62;
}

static constexpr int startOfB = 16384, sharedBytes = 40960;

/// Shared memory as the kernel's threads make it.
static std::vector<uint32_t> sharedImage(const Product &p) {
  std::vector<uint32_t> words(sharedBytes / 4, 0x7e7e7e7e);
  auto *bytes = reinterpret_cast<char *>(words.data());
  for (int k = 0; k < p.K(); ++k) {
    for (int m = 0; m < 64 && !p.aInRegisters; ++m) {
      const uint32_t element = encoded(p.a, valueA(p, m, k));
      std::memcpy(bytes + placeOf(p, p.turnA, m, k), &element, static_cast<size_t>(p.elementBytes()));
    }
    for (int n = 0; n < p.N; ++n) {
      const uint32_t element = encoded(p.b, valueB(p, k, n));
      std::memcpy(bytes + startOfB + placeOf(p, p.turnB, n, k), &element, static_cast<size_t>(p.elementBytes()));
    }
  }
  return words;
}

/// The words that a thread has of A: row lane / 4 + 8 (r & 1) of its warp's 16, columns from E (lane % 4) + 4 E (r >>
/// 1).
static std::vector<uint32_t> fragmentsOfA(const Product &p) {
  std::vector<uint32_t> words(128 * 4);
  const int perWord = 4 / p.elementBytes();
  for (int t = 0; t < 128; ++t)
    for (int r = 0; r < 4; ++r)
      for (int e = 0; e < perWord; ++e) {
        const int m = t / 32 * 16 + t % 32 / 4 + 8 * (r & 1), k = perWord * (t % 4) + 4 * perWord * (r >> 1) + e;
        words[static_cast<size_t>(4 * t + r)] |= encoded(p.a, valueA(p, m, k)) << (e * 8 * p.elementBytes());
      }
  return words;
}

/// Calls visit(thread, register, half of the register, m, n) for every element of D.
template <class Visit> static void forD(const Product &p, Visit visit) {
  for (int t = 0; t < 128; ++t)
    for (int i = 0; i < p.N / 2; ++i) { // element i of a thread: 8 columns have four
      const int m = t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2), n = i / 4 * 8 + 2 * (t % 4) + i % 2;
      p.d == "f16" ? visit(t, i / 2, i % 2, m, n) : visit(t, i, 0, m, n);
    }
}

static std::vector<uint32_t> fragmentsOfD(const Product &p, int (*value)(int, int)) {
  std::vector<uint32_t> words(static_cast<size_t>(128 * p.registersOfD()));
  forD(p, [&](int t, int r, int half, int m, int n) {
    const uint32_t bits = p.isInteger()  ? static_cast<uint32_t>(value(m, n))
                          : p.d == "f16" ? encoded("f16", value(m, n))
                                         : std::bit_cast<uint32_t>(static_cast<float>(value(m, n)));
    words[static_cast<size_t>(t * p.registersOfD() + r)] |= bits << (16 * half);
  });
  return words;
}

namespace {
/// The code around the instruction; tests omit one part at a time.
struct Text {
  std::string fence = "wgmma.fence.sync.aligned;\n", proxy = "fence.proxy.async.shared::cta;\n", between = "",
              commit = "wgmma.commit_group.sync.aligned;\n", wait = "wgmma.wait_group.sync.aligned 0;\n";
  std::string prologue = "";
};
} // namespace

static std::string listOf(const char *name, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}{}{}", i ? ", " : "", name, i);
  return "{" + text + "}";
}

/// The matrices follow other shared memory, as on a GPU, where the first bytes are the system's. %p0: bytes of shared
/// memory, %p1: words of A's registers, %p2: D before, %p3: D after, %p4: two descriptors.
static std::string ptxText(const Product &p, const Text &around) {
  const std::string type = p.d == "f32" ? "f32" : "b32";
  std::string loads, stores;
  for (int i = 0; i < p.registersOfD(); ++i) {
    loads += fmt::format("ld.global.b32 %d{}, [%x+{}];\n", i, 4 * i);
    stores += fmt::format("st.global.b32 [%x+{}], %d{};\n", 4 * i, i);
  }
  for (int i = 0; i < 4; ++i)
    loads += fmt::format("ld.global.b32 %a{}, [%y+{}];\n", i, 4 * i);
  std::string modifiers = p.isInteger() ? "" : fmt::format(", {}, {}", p.negateA ? -1 : 1, p.negateB ? -1 : 1);
  if (p.elementBytes() == 2)
    modifiers +=
        p.aInRegisters ? fmt::format(", {}", int{p.turnB}) : fmt::format(", {}, {}", int{p.turnA}, int{p.turnB});
  return hopperKernel(
      5,
      fmt::format(".shared .align 1024 .b8 first[1024];\n.shared .align 1024 .b8 pool[{}];\n.reg .{} %d<{}>;\n.reg "
                  ".b32 %a<4>, %i, %w, %z;\n"
                  ".reg .b64 %x, %y, %e, %f, %g;\n.reg .pred %q<3>;",
                  sharedBytes, type, p.registersOfD()),
      fmt::format(
          "mov.u32 %z, first;\nmov.u32 %i, %t;\nC:\nmul.wide.u32 %x, %i, 4;\nadd.u64 %x, %x, %p0;\nld.global.b32 %w, "
          "[%x];\n"
          "mov.u32 %z, pool;\nmad.lo.u32 %z, %i, 4, %z;\nst.shared.b32 [%z], %w;\nadd.u32 %i, %i, 128;\n"
          "setp.lt.u32 %q0, %i, {};\n@%q0 bra C;\n{}bar.sync 0;\nmul.wide.u32 %x, %t, {};\nadd.u64 %x, %x, %p2;\n"
          "mul.wide.u32 %y, %t, 16;\nadd.u64 %y, %y, %p1;\nld.global.b64 %e, [%p4];\nld.global.b64 %f, [%p4+8];\n"
          "mov.u64 %g, pool;\nshr.u64 %g, %g, 4;\nadd.u64 %e, %e, %g;\nadd.u64 %f, %f, %g;\n"
          "setp.eq.u32 %q1, 0, {};\n{}{}",
          sharedBytes / 4, around.proxy, 4 * p.registersOfD(), p.keeps ? 0 : 1, loads, around.prologue) +
          around.fence +
          fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{}{} {}, {}, %f, %q1{};\n", p.N, p.K(), p.d, p.a,
                      p.b, p.saturates ? ".satfinite" : "", listOf("%d", p.registersOfD()),
                      p.aInRegisters ? listOf("%a", 4) : "%e", modifiers) +
          around.between + around.commit + around.wait +
          fmt::format("mul.wide.u32 %x, %t, {};\nadd.u64 %x, %x, %p3;\n", 4 * p.registersOfD()) + stores);
}

/// Runs it; the faults, and D in `got`.
static std::vector<std::string> run(const Product &p, const Text &around, std::vector<uint32_t> *got,
                                    const std::vector<uint32_t> &before, const std::vector<uint64_t> &descriptors) {
  Machine machine(ptxText(p, around));
  const uint32_t *shared = machine.buffer(sharedImage(p)), *a = machine.buffer(fragmentsOfA(p)),
                 *old = machine.buffer(before), *out = machine.buffer(std::vector<uint32_t>(before.size(), 77));
  const uint64_t *both = machine.buffer(descriptors);
  machine.run("k", {1, 1, 1}, {128, 1, 1}, {address(shared), address(a), address(old), address(out), address(both)});
  got->assign(out, out + before.size());
  return machine.found();
}

static std::vector<uint64_t> descriptorsOf(const Product &p) {
  return {descriptor(p, p.turnA, 0), descriptor(p, p.turnB, startOfB)};
}

static void expectProduct(const Product &p) {
  std::vector<uint32_t> got;
  EXPECT_EQ(run(p, {}, &got, fragmentsOfD(p, valueD), descriptorsOf(p)), std::vector<std::string>{});
  int wrong = 0;
  forD(p, [&](int t, int r, int half, int m, int n) {
    int sum = p.keeps ? valueD(m, n) : 0;
    for (int k = 0; k < p.K(); ++k)
      sum += valueA(p, m, k) * valueB(p, k, n) * (p.negateA != p.negateB ? -1 : 1);
    const uint32_t word = got[static_cast<size_t>(t * p.registersOfD() + r)];
    const float value = p.isInteger() ? static_cast<float>(static_cast<int32_t>(word))
                        : p.d == "f16"
                            ? static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(word >> (16 * half))))
                            : std::bit_cast<float>(word);
    if (value != static_cast<float>(sum) && ++wrong <= 3)
      ADD_FAILURE() << fmt::format("{}.{}.{} n{} swizzle {} turned {}{}: D({}, {}): got {}, want {}", p.d, p.a, p.b,
                                   p.N, p.swizzle, int{p.turnA}, int{p.turnB}, m, n, value, sum);
  });
}

// --- Values --------------------------------------------------------------------------------------------------------

TEST(WgmmaTest, TakesEveryType) {
  expectProduct({.a = "bf16", .b = "bf16"});
  expectProduct({.a = "f16", .b = "f16"});
  expectProduct({.d = "f16"});
  expectProduct({.a = "tf32", .b = "tf32"});
  for (const char *d : {"f32", "f16"})
    for (const char *a : {"e4m3", "e5m2"})
      for (const char *b : {"e4m3", "e5m2"})
        expectProduct({.d = d, .a = a, .b = b});
  for (const char *a : {"s8", "u8"})
    for (const char *b : {"s8", "u8"})
      expectProduct({.d = "s32", .a = a, .b = b});
}

TEST(WgmmaTest, TakesEveryLayout) {
  for (const int swizzle : {0, 32, 64, 128}) {
    for (const bool turnA : {false, true})
      for (const bool turnB : {false, true})
        expectProduct({.N = 72, .swizzle = swizzle, .turnA = turnA, .turnB = turnB});
    expectProduct({.a = "tf32", .b = "tf32", .N = 40, .swizzle = swizzle});
    expectProduct({.d = "s32", .a = "s8", .b = "u8", .N = 48, .swizzle = swizzle});
  }
}

TEST(WgmmaTest, TakesEveryWidth) {
  for (const int N : {8, 64, 136, 256})
    expectProduct({.a = "bf16", .b = "bf16", .N = N, .swizzle = 64}); // 256 rows of 64 bytes
  expectProduct({.d = "s32", .a = "s8", .b = "s8", .N = 24});
}

TEST(WgmmaTest, TakesAFromRegisters) {
  expectProduct({.aInRegisters = true});
  expectProduct({.a = "bf16", .b = "bf16", .N = 64, .turnB = true, .aInRegisters = true});
  expectProduct({.a = "tf32", .b = "tf32", .aInRegisters = true});
  expectProduct({.a = "e4m3", .b = "e5m2", .aInRegisters = true});
  expectProduct({.d = "s32", .a = "u8", .b = "s8", .aInRegisters = true});
}

// A and B may be negated, and D's initial value may be omitted.
TEST(WgmmaTest, Scales) {
  expectProduct({.negateA = true});
  expectProduct({.negateB = true});
  expectProduct({.aInRegisters = true, .negateA = true, .negateB = true});
  expectProduct({.keeps = false});
  expectProduct({.d = "f16", .keeps = false});
  expectProduct({.d = "s32", .a = "s8", .b = "s8", .keeps = false});
}

// A sum of integers wraps, or with .satfinite stops at the ends.
TEST(WgmmaTest, Saturates) {
  for (const bool saturates : {false, true}) {
    const Product p{.d = "s32", .a = "u8", .b = "u8", .N = 8, .saturates = saturates};
    const int64_t most = std::numeric_limits<int32_t>::max();
    std::vector<uint32_t> got;
    run(p, {}, &got, fragmentsOfD(p, [](int, int) { return std::numeric_limits<int32_t>::max(); }), descriptorsOf(p));
    forD(p, [&](int t, int r, int, int m, int n) {
      int64_t sum = most;
      for (int k = 0; k < p.K(); ++k)
        sum += valueA(p, m, k) * valueB(p, k, n);
      EXPECT_EQ(static_cast<int32_t>(got[static_cast<size_t>(t * p.registersOfD() + r)]),
                saturates ? static_cast<int32_t>(std::min(sum, most)) : static_cast<int32_t>(sum));
    });
  }
}

// --- Rules ---------------------------------------------------------------------------------------------------------

static std::vector<std::string> faultsOf(const Product &p, const Text &around, std::vector<uint64_t> descriptors = {}) {
  std::vector<uint32_t> got;
  if (descriptors.empty())
    descriptors = descriptorsOf(p);
  return run(p, around, &got, fragmentsOfD(p, valueD), descriptors);
}

// The registers that others have written are fenced before a wgmma reads them, and there is a fence before the first.
TEST(WgmmaTest, WantsAFence) {
  EXPECT_EQ(faultsOf({}, {.fence = ""}), std::vector<std::string>{"wgmma: comes before any wgmma.fence"});
  const std::string write = "mov.f32 %d3, 0f00000000;\n", fault =
                                                              "wgmma: reads a register that has been written since the "
                                                              "last wgmma.fence";
  EXPECT_EQ(faultsOf({}, {.fence = "wgmma.fence.sync.aligned;\n" + write}), std::vector<std::string>{fault});
  EXPECT_EQ(faultsOf({.keeps = false}, {.fence = "wgmma.fence.sync.aligned;\n" + write}), std::vector<std::string>{});
  EXPECT_EQ(faultsOf({.aInRegisters = true}, {.fence = "wgmma.fence.sync.aligned;\nmov.b32 %a1, 0;\n"}),
            std::vector<std::string>{fault});
}

// A predicate that is written after the fence is no register that the fence covers, at any position among them.
TEST(WgmmaTest, WantsNoFenceForPredicates) {
  const std::string fence = "wgmma.fence.sync.aligned;\n", proxy = Text().proxy;
  for (const std::string &before : {std::string(), std::string("setp.eq.u32 %q2, 0, 0;\n")})
    EXPECT_EQ(faultsOf({}, {.fence = fence + "setp.eq.u32 %q1, 0, 0;\n", .proxy = before + proxy}),
              std::vector<std::string>{});
}

// From its issue until the wait for its group, no instruction may read its results or write its registers.
TEST(WgmmaTest, KeepsItsRegisters) {
  const std::string reads = "wgmma: reads the result of a wgmma of which the group has not been waited for",
                    writes = "wgmma: writes a register of a wgmma of which the group has not been waited for";
  EXPECT_EQ(faultsOf({.N = 8}, {.wait = ""}), std::vector<std::string>(4, reads)); // four stores
  EXPECT_EQ(faultsOf({.N = 8}, {.commit = ""}), std::vector<std::string>(4, reads));
  EXPECT_EQ(faultsOf({.N = 8}, {.wait = "wgmma.wait_group.sync.aligned 1;\n"}), std::vector<std::string>(4, reads));
  EXPECT_EQ(faultsOf({}, {.between = "mov.f32 %d3, 0f00000000;\n"}), std::vector<std::string>{writes});
  EXPECT_EQ(faultsOf({.aInRegisters = true}, {.between = "mov.b32 %a1, 0;\n"}), std::vector<std::string>{writes});
  EXPECT_EQ(faultsOf({.aInRegisters = true}, {.between = "mov.b32 %w, %a1;\n"}), std::vector<std::string>{});
}

// Nor may any write its operands in shared memory, through any proxy.
TEST(WgmmaTest, KeepsItsOperands) {
  const auto has = [](const std::vector<std::string> &found, const char *kind) {
    return std::any_of(found.begin(), found.end(), [&](const std::string &text) { return text.starts_with(kind); });
  };
  const std::vector<std::string> found = faultsOf({}, {.between = "mov.u32 %z, pool;\nmad.lo.u32 %z, %t, 4, %z;\n"
                                                                  "st.shared.b32 [%z], 0;\n"});
  EXPECT_TRUE(has(found, "in-flight: "));
  const std::vector<std::string> unfenced = faultsOf({}, {.proxy = ""});
  ASSERT_EQ(unfenced.size(), 1u);
  EXPECT_TRUE(has(unfenced, "proxy: ")) << unfenced[0];
}

// Descriptors: those that the simulator refuses, and those outside of memory.
TEST(WgmmaTest, LooksAtDescriptors) {
  const Product p;
  std::vector<uint64_t> both = descriptorsOf(p);
  both[0] |= uint64_t{1} << 49;
  EXPECT_EQ(faultsOf(p, {}, both),
            std::vector<std::string>{
                "wgmma: A: a base offset in a matrix descriptor is not supported by the simulator, but got 1"});
  both = descriptorsOf(p);
  both[1] += 256 >> 4;
  EXPECT_EQ(
      faultsOf(p, {}, both),
      std::vector<std::string>{"wgmma: B: expected a matrix of a 128-byte swizzle in the first row of its pattern of "
                               "1024 bytes, but got one at 17664"});
  both = descriptorsOf(p);
  both[1] = (both[1] & ~uint64_t{0x3fff}) | 0x3f80;
  EXPECT_EQ(faultsOf(p, {}, both),
            std::vector<std::string>{"bounds: reads B at 261120 in .shared, beyond its 41984 bytes"});
}

// All four warps have equal descriptors, and so have all lanes of a warp.
TEST(WgmmaTest, WantsAgreement) {
  const Text other{.prologue = "setp.ge.u32 %q2, %t, 96;\n@%q2 add.u64 %f, %f, 64;\n"};
  const std::vector<std::string> found = faultsOf({}, other);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("wgmma: expected the operands ")) << found[0];
  const Text lanes{.prologue = "setp.eq.u32 %q2, %t, 5;\n@%q2 add.u64 %f, %f, 64;\n"};
  EXPECT_TRUE(faultsOf({}, lanes).at(0).starts_with("wgmma: B's descriptor is "));
}

} // namespace kiln::simulator::test
