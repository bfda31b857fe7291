// Names for parts of shared memory: comments in the text, and their use in findings.

#include "runtime/simulator/SharedNames.h"
#include "test/expect_error.h"
#include "test/runtime/simulator/machine.h"

namespace kiln::simulator::test {

static SharedNames namesOf(const std::string &text) {
  SharedNames names;
  names.read(text, "k", "line");
  return names;
}

// A byte has the names of all parts that contain it, and its offset in them.
TEST(SharedNamesTest, NameBytes) {
  const SharedNames names = namesOf("ret;\n  // kiln.shared k 128 64 stage 1 of a\n// kiln.shared k 160 32 b\r\n");
  EXPECT_EQ(names.at(127), "");
  EXPECT_EQ(names.at(128), " ('stage 1 of a')");
  EXPECT_EQ(names.at(160), " ('stage 1 of a' + 32 or 'b')");
  EXPECT_EQ(names.at(192), "");
}

TEST(SharedNamesTest, BelongToAKernel) { EXPECT_EQ(namesOf("// kiln.shared other 0 64 a").at(0), ""); }

TEST(SharedNamesTest, RefuseOtherLines) {
  for (const char *line : {"// kiln.shared k 0 a", "// kiln.shared k 0 64", "// kiln.shared k -1 64 a"})
    expectError([&] { namesOf(std::string("\n") + line); },
                {"line 2: expected '// kiln.shared KERNEL OFFSET BYTES NAME', but got '", line});
}

// Findings in shared memory, and about mbarriers, have the name next to the address.
TEST(SharedNamesTest, StandInFindings) {
  Machine machine(hopperKernel(0, ".shared .align 16 .b8 data[128];\n.reg .b32 %r;",
                               "ld.shared.u32 %r, [data+68];\nmbarrier.arrive.shared::cta.b64 _, [data+64];\n") +
                  "// kiln.shared k 64 16 a\n");
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {});
  EXPECT_EQ(machine.found(),
            (std::vector<std::string>{"uninitialised: reads byte 68 of .shared ('a' + 4), to which nothing was written",
                                      "mbarrier: arrives at an mbarrier at 64 ('a'), where none has been made"}));
}

} // namespace kiln::simulator::test
