// Names of places in findings: parts of shared memory, from comments in the text, and the view and the element of an
// address.

#include "runtime/simulator/PlaceNames.h"
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

// --- Elements of arguments -----------------------------------------------------------------------------------------

/// A dense matrix, one with gaps between its rows, a transposed one, one whose rows repeat, one with a negative row
/// stride, and an empty view.
static ViewNames views() {
  ViewNames names;
  names.add({"out", f32, 0x1000, {4, 64}, {64, 1}});
  names.add({"padded", f16, 0x2000, {3, 5}, {8, 1}});
  names.add({"turned", f32, 0x3000, {3, 5}, {1, 3}});
  names.add({"row", f32, 0x4000, {7, 2}, {0, 1}});
  names.add({"flipped", f32, 0x7400, {5, 64}, {-64, 1}});
  names.add({"empty", f32, 0x5000, {0}, {1}});
  return names;
}

// The index has the view's order of dimensions, for all strides. A byte within an element is that element.
TEST(ViewNames, NameElements) {
  EXPECT_EQ(views().textOf(0x1000), "0x1000 (out[0, 0] of f32[4x64])");
  EXPECT_EQ(views().textOf(0x1000 + 4 * (3 * 64 + 60) + 3), "0x13f3 (out[3, 60] of f32[4x64])");
  EXPECT_EQ(views().textOf(0x2000 + 2 * (2 * 8 + 4)), "0x2028 (padded[2, 4] of f16[3x5])");
  EXPECT_EQ(views().textOf(0x3000 + 4 * (2 + 3 * 4)), "0x3038 (turned[2, 4] of f32[3x5])");
  EXPECT_EQ(views().textOf(0x4004), "0x4004 (row[0, 1] of f32[7x2])");
  EXPECT_EQ(views().textOf(0x7000 + 4 * 3), "0x700c (flipped[4, 3] of f32[5x64])");
  EXPECT_EQ(views().textOf(0x7400), "0x7400 (flipped[0, 0] of f32[5x64])");
}

// An element of an array that is two arguments has two names.
TEST(ViewNames, NameAllViews) {
  ViewNames names;
  names.add({"x", f32, 0x1000, {64}, {1}});
  names.add({"other", f32, 0x2000, {64}, {1}});
  names.add({"out", f32, 0x1000, {64}, {1}});
  EXPECT_EQ(names.textOf(0x100c), "0x100c (x[3] of f32[64], also out[3] of f32[64])");
}

// An address between rows, before or after a view, or outside of all views stays an address.
TEST(ViewNames, LeaveOtherAddresses) {
  for (const uint64_t address : {0x2000 + 2 * 6, 0x0fff, 0x1400, 0x4008, 0x5000})
    EXPECT_EQ(views().textOf(address).find('('), std::string::npos) << views().textOf(address);
}

// An address outside of memory has the index that the first dimension in memory would have there, below 0 as well.
TEST(ViewNames, NameWhatWouldLieOutside) {
  EXPECT_EQ(views().textOutside(0x1400), "0x1400 (out[4, 0] of f32[4x64])");
  EXPECT_EQ(views().textOutside(0x1000 - 4), "0xffc (out[-1, 63] of f32[4x64])");
  EXPECT_EQ(views().textOutside(0x3000 + 4 * 16), "0x3040 (turned[1, 5] of f32[3x5])");
  EXPECT_EQ(views().textOutside(0x7000 - 4), "0x6ffc (flipped[5, 63] of f32[5x64])");
  EXPECT_EQ(views().textOutside(0x7000 + 4 * 5 * 64), "0x7500 (flipped[-1, 0] of f32[5x64])");
  EXPECT_EQ(views().textOutside(0x90000000), "0x90000000");
}

} // namespace kiln::simulator::test
