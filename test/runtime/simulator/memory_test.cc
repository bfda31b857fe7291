// Loads and stores in every space, and the findings for invalid addresses.

#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>

namespace kiln::simulator::test {

// Narrow loads extend by their type's sign into wider registers, narrow stores take the low bits.
TEST(MemoryTest, NarrowElements) {
  Machine machine(kernel(2, ".reg .b32 %r<4>;",
                         "ld.global.s8 %r0, [%p0];\nld.global.u8 %r1, [%p0];\nld.global.s16 %r2, [%p0+2];\n"
                         "st.global.u32 [%p1], %r0;\nst.global.u32 [%p1+4], %r1;\nst.global.u32 [%p1+8], "
                         "%r2;\nst.global.u8 [%p1+12], %r2;"));
  const uint8_t *in = machine.buffer<uint8_t>({0xfe, 0, 0x34, 0x92});
  const uint32_t *out = machine.buffer<uint32_t>({7, 7, 7, 7});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(in), address(out)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  EXPECT_EQ(std::vector<uint32_t>(out, out + 4), (std::vector<uint32_t>{0xfffffffe, 0xfe, 0xffff9234, 0x34}));
}

// A vector's elements are contiguous; a sink discards one.
TEST(MemoryTest, Vectors) {
  Machine machine(kernel(
      2, ".reg .b32 %r<4>;",
      "ld.global.v4.u32 {%r0, %r1, _, %r3}, [%p0];\nst.global.v2.u32 [%p1], {%r3, %r0};\nst.global.u32 [%p1+8], %r1;"));
  const uint32_t *in = machine.buffer<uint32_t>({1, 2, 3, 4});
  const uint32_t *out = machine.buffer<uint32_t>({0, 0, 0});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(in), address(out)});
  EXPECT_EQ(std::vector<uint32_t>(out, out + 3), (std::vector<uint32_t>{4, 1, 2}));
}

// Each block has its own shared memory: static variables at their alignment, dynamic ones after them.
TEST(MemoryTest, SharedMemory) {
  const std::string text = module(
      ".extern .shared .align 16 .b8 more[];\n.visible .entry k(.param .u64 k0) {\n.shared .align 8 .b32 fixed[32];\n"
      ".reg .b64 %rd<3>; .reg .b32 %r<8>;\nld.param.u64 %rd0, [k0];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n"
      "shl.b32 %r2, %r0, 2;\nmov.u32 %r3, fixed;\nadd.u32 %r3, %r3, %r2;\nmov.u32 %r4, more;\nadd.u32 %r4, %r4, %r2;\n"
      "st.shared.u32 [%r3], %r1;\nst.shared.u32 [%r4], %r0;\nbar.sync 0;\n"
      "xor.b32 %r5, %r2, 124;\nmov.u32 %r6, more;\nadd.u32 %r6, %r6, %r5;\nld.shared.u32 %r6, [%r6];\nld.shared.u32 "
      "%r7, [%r3];\n"
      "mad.lo.u32 %r6, %r7, 100, %r6;\nmad.lo.u32 %r5, %r1, 32, %r0;\nmul.wide.u32 %rd1, %r5, 4;\nadd.u64 %rd2, %rd0, "
      "%rd1;\n"
      "st.global.u32 [%rd2], %r6;\nret;\n}\n");
  Machine machine(text);
  const uint32_t *out = machine.buffer(std::vector<uint32_t>(64));
  machine.run("k", {2, 1, 1}, {32, 1, 1}, {address(out)}, 128);
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i / 32 * 100 + (31 - i % 32)) << i;
}

// A generic address of shared or local memory leads there, and back by cvta.to.
TEST(MemoryTest, GenericAddresses) {
  Machine machine(
      kernel(1,
             ".shared .align 4 .b32 place[4];\n.local .align 4 .b32 mine[4];\n.reg .b64 %g<4>; .reg .b32 %r<4>; .reg "
             ".pred %q;",
             "mov.u64 %g0, place;\ncvta.shared.u64 %g1, %g0;\nst.u32 [%g1+4], 5;\nld.shared.u32 %r0, [place+4];\n"
             "mov.u64 %g2, mine;\ncvta.local.u64 %g3, %g2;\nst.u32 [%g3+8], 6;\nld.local.u32 %r1, [mine+8];\n"
             "isspacep.shared %q, %g1;\nselp.u32 %r2, 1, 0, %q;\nisspacep.shared %q, %g3;\nselp.u32 %r3, 1, 0, %q;\n"
             "st.global.v4.u32 [%p0], {%r0, %r1, %r2, %r3};"));
  const uint32_t *out = machine.buffer(std::vector<uint32_t>(4));
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(out)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  EXPECT_EQ(std::vector<uint32_t>(out, out + 4), (std::vector<uint32_t>{5, 6, 1, 0}));
}

// Variables of the module have their initial values; constant memory may not be written.
TEST(MemoryTest, ModuleVariables) {
  Machine machine(
      module(".const .align 4 .b32 table[3] = {10, 20, 0x1E};\n.global .align 8 .b64 pointer = generic(table);\n"
             ".visible .entry k(.param .u64 k0) {\n.reg .b64 %rd<4>; .reg .b32 %r<3>;\nld.param.u64 %rd0, [k0];\n"
             "ld.const.u32 %r0, [table+8];\nld.global.u64 %rd1, [pointer];\nld.u32 %r1, [%rd1+4];\n"
             "st.global.u32 [%rd0], %r0;\nst.global.u32 [%rd0+4], %r1;\nst.u32 [%rd1], %r0;\nret;\n}\n"));
  const uint32_t *out = machine.buffer(std::vector<uint32_t>(2));
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(out)});
  EXPECT_EQ(out[0], 30u);
  EXPECT_EQ(out[1], 20u);
  EXPECT_EQ(machine.found(), std::vector<std::string>{"read-only: writes 4 bytes of constant memory"});
}

// Beyond an allocation a load gives 0 and a store does nothing; both are found, with how far off they were.
TEST(MemoryTest, OutOfBoundsIsFoundAndHarmless) {
  Machine machine(
      kernel(2, ".reg .b32 %r;", "ld.global.u32 %r, [%p0+16];\nst.global.u32 [%p1], %r;\nst.global.u32 [%p1+-4], 9;"));
  const uint32_t *in = machine.buffer<uint32_t>({1, 2, 3, 4});
  const uint32_t *out = machine.buffer<uint32_t>({7});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(in), address(out)});
  EXPECT_EQ(out[0], 0u);
  ASSERT_EQ(machine.found().size(), 2u);
  EXPECT_NE(machine.found()[0].find("reads 4 bytes"), std::string::npos) << machine.found()[0];
  EXPECT_NE(machine.found()[0].find("4 bytes beyond an allocation of 16 bytes"), std::string::npos)
      << machine.found()[0];
  EXPECT_NE(machine.found()[1].find("4 bytes before an allocation of 4 bytes"), std::string::npos)
      << machine.found()[1];
}

// So is an access outside shared and local memory, and by a null pointer.
TEST(MemoryTest, OutOfBoundsInEverySpace) {
  Machine machine(
      kernel(1, ".shared .b32 place[4];\n.local .b32 mine[4];\n.reg .b32 %r; .reg .b64 %z;",
             "ld.shared.u32 %r, [place+16];\nld.local.u32 %r, [mine+4096];\nmov.u64 %z, 0;\nld.global.u32 %r, [%z];"));
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {0});
  ASSERT_EQ(machine.found().size(), 3u);
  for (const std::string &text : machine.found())
    EXPECT_EQ(text.substr(0, 6), "bounds") << text;
}

// A vector's address must be a multiple of its size.
TEST(MemoryTest, MisalignedVectorsAreFound) {
  Machine machine(kernel(1, ".reg .b32 %r<2>;", "ld.global.v2.u32 {%r0, %r1}, [%p0+4];"));
  const uint32_t *in = machine.buffer<uint32_t>({1, 2, 3, 4});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(in)});
  ASSERT_EQ(machine.found().size(), 1u);
  EXPECT_EQ(machine.found()[0].substr(0, 9), "alignment");
}

} // namespace kiln::simulator::test
