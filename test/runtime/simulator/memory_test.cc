// Loads and stores in every space, and the findings for invalid addresses.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

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

// --- Bytes without a value, and bytes in flight ----------------------------------------------------------------------

static std::vector<std::string> found(const std::string &body, int threads, Schedule schedule = {}) {
  Machine machine(kernel(1, ".shared .align 16 .b8 place[1024];\n.reg .b32 %r<8>; .reg .b16 %h; .reg .pred %q;\n",
                         "mov.u32 %r0, place;\nshl.b32 %r1, %t, 4;\nadd.u32 %r1, %r0, %r1;\n" + body));
  const uint8_t *memory = machine.buffer(std::vector<uint8_t>(1024));
  machine.run("k", {1, 1, 1}, {threads, 1, 1}, {address(memory)}, 0, schedule);
  return machine.found();
}

using Texts = std::vector<std::string>;

// Shared memory has no value before it is written, byte by byte.
TEST(ShadowTest, UninitialisedSharedMemory) {
  EXPECT_EQ(found("ld.shared.u32 %r2, [place+8];", 1),
            Texts{"uninitialised: reads byte 8 of .shared, to which nothing was written"});
  EXPECT_EQ(found("st.shared.u32 [place+8], 1;\nld.shared.u32 %r2, [place+8];", 1), Texts{});
  EXPECT_EQ(found("mov.u16 %h, 1;\nst.shared.b8 [place+8], %h;\nld.shared.u16 %h, [place+8];", 1),
            Texts{"uninitialised: reads byte 9 of .shared, to which nothing was written"});
  EXPECT_EQ(found("mov.u16 %h, 1;\nst.shared.b8 [place+8], %h;\nst.shared.b8 [place+9], %h;\nld.shared.u16 %h, "
                  "[place+8];",
                  1),
            Texts{});
}

// A register has no value before it is written: on every way there, by every lane that reads it.
TEST(ShadowTest, UninitialisedRegisters) {
  const auto reads = [](int number) {
    return Texts{fmt::format("uninitialised: reads register '%r{}', to which nothing was written", number)};
  };
  EXPECT_EQ(found("add.u32 %r3, %r2, 1;", 1), reads(2));
  EXPECT_EQ(found("setp.lt.u32 %q, %t, 5;\n@%q mov.u32 %r2, 1;\n@%q add.u32 %r3, %r2, 1;", 32), Texts{});
  EXPECT_EQ(found("setp.lt.u32 %q, %t, 5;\n@%q mov.u32 %r2, 1;\nadd.u32 %r3, %r2, 1;", 32), reads(2));
  EXPECT_EQ(found("setp.lt.u32 %q, %t, 5;\n@%q mov.u32 %r2, 1;\nadd.u32 %r3, %r2, 1;", 5), Texts{});
  const std::string branch = "setp.lt.u32 %q, %t, 5;\n@%q bra less;\nmov.u32 %r2, 1;\n";
  EXPECT_EQ(found(branch + "less:\nadd.u32 %r3, %r2, 1;", 32), reads(2));
  EXPECT_EQ(found(branch + "bra both;\nless:\nmov.u32 %r2, 2;\nboth:\nadd.u32 %r3, %r2, 1;", 32), Texts{});
  EXPECT_EQ(found("mov.u32 %r3, 0;\nagain:\n@%q add.u32 %r4, %r2, 1;\nmov.u32 %r2, 1;\nsetp.eq.u32 %q, %r3, 0;\n"
                  "add.u32 %r3, %r3, 1;\nsetp.lt.u32 %q, %r3, 3;\n@%q bra again;",
                  1),
            (Texts{"uninitialised: reads register '%q', to which nothing was written"}));
}

// A constant selector of prmt reads the sources that it takes bytes of.
TEST(ShadowTest, PermutationsReadWhatTheyTake) {
  const auto finds = [](const std::string &operands) {
    return found("mov.u32 %r2, 1;\nprmt.b32 %r3, " + operands + ";", 1).size();
  };
  EXPECT_EQ(finds("%r2, %r4, 0x1100"), 0U);
  EXPECT_EQ(finds("%r4, %r2, 0x7CC4"), 0U);
  EXPECT_EQ(finds("%r2, %r4, 0x1140"), 1U);
  EXPECT_EQ(finds("%r4, %r2, 0x0777"), 1U);
  EXPECT_EQ(finds("%r2, %r4, %r2"), 1U);
}

// A thread's local memory has no values either.
TEST(ShadowTest, UninitialisedLocalMemory) {
  const std::string address = ".local .b32 mine[2];\n";
  EXPECT_EQ(found(address + "st.local.u32 [mine], 1;\nld.local.u32 %r2, [mine];", 1), Texts{});
  EXPECT_EQ(found(address + "st.local.u32 [mine], 1;\nld.local.u32 %r2, [mine+4];", 1),
            Texts{"uninitialised: reads 4 bytes at 4 in .local, to which nothing was written"});
}

// A bit field may be inserted into a word without a value. Its other bits, as far as bytes can record it, have none
// afterwards, and using one counts as a read.
TEST(ShadowTest, FieldsOfBitsOfAWordWithoutAValue) {
  const std::string load =
                        ".local .align 4 .b32 mine[2];\n.reg .b64 %m;\nmov.u64 %m, mine;\nld.local.u32 %r2, [%m+4];\n",
                    put = "and.b32 %r3, %r2, -256;\nor.b32 %r4, %r3, 7;\n";
  const Texts reads{"uninitialised: reads 4 bytes at 4 in .local, to which nothing was written"};
  EXPECT_EQ(found(load + put + "st.local.u32 [%m+4], %r4;\nld.local.u32 %r5, [%m+4];\nadd.u32 %r5, %r5, 1;", 1),
            Texts{});
  EXPECT_EQ(found(load + "mov.u32 %r3, 7;\nbfi.b32 %r4, %r3, %r2, 8, 4;\nst.local.u32 [%m+4], %r4;", 1), Texts{});
  EXPECT_EQ(found(load + put + "st.local.u32 [%m], %r4;", 1), reads);
  EXPECT_EQ(found(load + put + "st.local.u32 [%m+4], %r4;\nadd.u32 %r5, %r3, 1;", 1), reads);
  EXPECT_EQ(found(load + "shr.u32 %r3, %r2, 8;\nst.local.u32 [%m+4], %r3;", 1), reads);
}

static const std::string copy = "cp.async.cg.shared.global [%r1], [%p0], 16;\ncp.async.commit_group;\n";

// Bytes that cp.async copies may be accessed after their thread has waited, at every time of delivery.
TEST(ShadowTest, BytesInFlight) {
  for (const Delivery delivery : {Delivery::late, Delivery::early, Delivery::random}) {
    const Schedule schedule{.delivery = delivery};
    const std::string
        wait = "\ncp.async.wait_all;",
        inFlight =
            "in-flight: {} byte 0 of .shared, to which an asynchronous copy is under way that nobody has waited for";
    EXPECT_EQ(found(copy + "ld.shared.u32 %r2, [%r1];" + wait, 1, schedule),
              Texts{fmt::format(fmt::runtime(inFlight), "reads")});
    EXPECT_EQ(found(copy + "st.shared.u32 [%r1], 1;" + wait, 1, schedule),
              Texts{fmt::format(fmt::runtime(inFlight), "writes")});
    EXPECT_EQ(found(copy + "cp.async.wait_group 0;\nld.shared.u32 %r2, [%r1];", 1, schedule), Texts{});
    EXPECT_EQ(found(copy + "cp.async.wait_group 1;\nld.shared.u32 %r2, [%r1];" + wait, 1, schedule).size(), 1u);
  }
}

// Other threads see the data after a barrier that follows the wait.
TEST(ShadowTest, WaitingIsForOneThread) {
  const std::string read = "xor.b32 %r1, %r1, 512;\nld.shared.u32 %r2, [%r1];";
  EXPECT_EQ(found(copy + "cp.async.wait_group 0;\nbar.sync 0;\n" + read, 64), Texts{});
  EXPECT_NE(found(copy + "cp.async.wait_group 0;\n" + read, 64), Texts{});
  EXPECT_NE(found(copy + "bar.sync 0;\ncp.async.wait_group 0;\n" + read, 64), Texts{});
}

// --- Atomic operations: the final memory and each thread's result ----------------------------------------------------

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
