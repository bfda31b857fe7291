// Atomic operations: the final memory and each thread's result.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace kiln::simulator::test {

// Sums of all threads of all blocks; each gets a different old value.
TEST(AtomicTest, EveryThreadGetsItsOwnOldValue) {
  Machine machine(kernel(2, ".reg .b32 %r; .reg .b64 %at;",
                         "atom.global.add.u32 %r, [%p0], 1;\nadd.u64 %at, %p1, %o;\nst.global.u32 [%at], %r;"));
  const uint32_t *counter = machine.buffer<uint32_t>({0});
  const uint64_t *out = machine.buffer(std::vector<uint64_t>(256));
  machine.varies = "the order of atomic operations is nobody's";
  machine.run("k", {4, 1, 1}, {64, 1, 1}, {address(counter), address(out)});
  EXPECT_EQ(counter[0], 256u);
  std::vector<uint64_t> old(out, out + 256), want(256);
  std::sort(old.begin(), old.end());
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(old, want);
}

// Each operation by its definition, on one word.
TEST(AtomicTest, OperationsByDefinition) {
  struct Case {
    const char *instruction;
    uint32_t before, after;
  };
  for (const Case &c :
       {Case{"red.global.min.s32 [%p0], 0xfffffffe;", 5, 0xfffffffe}, Case{"red.global.max.u32 [%p0], 9;", 5, 9},
        Case{"red.global.and.b32 [%p0], 6;", 5, 4}, Case{"red.global.or.b32 [%p0], 6;", 5, 7},
        Case{"red.global.xor.b32 [%p0], 6;", 5, 3}, Case{"red.global.inc.u32 [%p0], 5;", 5, 0},
        Case{"red.global.inc.u32 [%p0], 6;", 5, 6}, Case{"red.global.dec.u32 [%p0], 3;", 5, 3},
        Case{"red.global.dec.u32 [%p0], 9;", 0, 9}, Case{"atom.global.exch.b32 _, [%p0], 8;", 5, 8},
        Case{"atom.global.cas.b32 _, [%p0], 5, 11;", 5, 11}, Case{"atom.global.cas.b32 _, [%p0], 4, 11;", 5, 5}}) {
    Machine machine(kernel(1, "", c.instruction));
    const uint32_t *word = machine.buffer<uint32_t>({c.before});
    machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(word)});
    EXPECT_EQ(word[0], c.after) << c.instruction;
    EXPECT_EQ(machine.found(), std::vector<std::string>{}) << c.instruction;
  }
}

// Float sums, whole and in pairs of halves: 64 ones.
TEST(AtomicTest, FloatSums) {
  Machine machine(
      kernel(2, ".reg .b32 %r;",
             "red.global.add.f32 [%p0], 0f3F800000;\nmov.b32 %r, 0x40003C00;\nred.global.add.noftz.f16x2 [%p1], %r;"));
  const float *single = machine.buffer<float>({0.5f});
  const uint32_t *pair = machine.buffer<uint32_t>({0});
  machine.run("k", {2, 1, 1}, {32, 1, 1}, {address(single), address(pair)});
  EXPECT_EQ(single[0], 64.5f);
  EXPECT_EQ(pair[0], 0x58005400u); // 128 and 64
}

// A lock between lanes of one warp: each must acquire it.
TEST(AtomicTest, LanesOfAWarpCanWaitForEachOther) {
  Machine machine(
      kernel(2, ".reg .b32 %r<3>; .reg .pred %q;",
             "again:\natom.global.cas.b32 %r0, [%p0], 0, 1;\nsetp.ne.u32 %q, %r0, 0;\n@%q bra again;\n"
             "ld.volatile.global.u32 %r1, [%p1];\nadd.u32 %r1, %r1, 1;\nst.volatile.global.u32 [%p1], %r1;\n"
             "membar.gl;\natom.global.exch.b32 %r2, [%p0], 0;"));
  const uint32_t *lock = machine.buffer<uint32_t>({0});
  const uint32_t *count = machine.buffer<uint32_t>({0});
  machine.run("k", {2, 1, 1}, {40, 1, 1}, {address(lock), address(count)});
  EXPECT_EQ(count[0], 80u);
}

} // namespace kiln::simulator::test
