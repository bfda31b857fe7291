// Bytes without a value, and bytes in flight.

#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>

namespace kiln::simulator::test {

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

} // namespace kiln::simulator::test
