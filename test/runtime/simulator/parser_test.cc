// PTX text: constructs that are easily misread, and errors with lines for invalid text.

#include "runtime/simulator/PlaceNames.h"
#include "runtime/simulator/ptx/Module.h"
#include "test/expect_error.h"
#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>

namespace kiln::simulator::test {
using ptx::Operand;

static ptx::Function onlyFunction(const std::string &body) {
  static std::vector<std::unique_ptr<ptx::Module>> kept; // a function's names lie in its module's text
  kept.push_back(std::make_unique<ptx::Module>(ptx::parse(module(".visible .entry k() {\n" + body + "\n}\n"))));
  return kept.back()->functions.at(0);
}

static std::string spelling(const ptx::Function &function, const ptx::Instruction &instruction) {
  std::string text(instruction.opcode);
  for (const std::string_view modifier : function.modifiersOf(instruction))
    text += fmt::format("|{}", modifier);
  return text;
}

// A modifier may begin with a digit and have parts; a number before a dot is still a modifier's.
TEST(ParserTest, Modifiers) {
  const ptx::Function f = onlyFunction(
      ".reg .b64 %rd<2>; .reg .b32 %r<4>;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd0, {%r1, %r2}], [%r3];\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r0], 32;");
  EXPECT_EQ(spelling(f, f.instructions[0]),
            "cp|async|bulk|tensor|2d|shared::cluster|global|mbarrier::complete_tx::bytes");
  EXPECT_EQ(spelling(f, f.instructions[1]), "tcgen05|alloc|cta_group::1|sync|aligned|shared::cta|b32");
  const Operand &tensor = f.operandsOf(f.instructions[0])[1];
  EXPECT_EQ(tensor.kind, Operand::Kind::address);
  EXPECT_EQ(f.elementsOf(tensor).size(), 2u);
}

// Numbers keep their bits: hexadecimal floats of both widths, hexadecimal, octal and binary integers, signs.
TEST(ParserTest, Numbers) {
  const ptx::Function f =
      onlyFunction(".reg .b64 %x; \nfoo 0f3F800000, 0d3FF0000000000000, 0x1F, 017, 0b101, -5, 7U, 1.5;");
  const auto operands = f.operandsOf(f.instructions[0]);
  const std::vector<uint64_t> want = {0x3f800000, 0x3ff0000000000000,        31, 15,
                                      5,          static_cast<uint64_t>(-5), 7,  0x3ff8000000000000};
  ASSERT_EQ(operands.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(operands[i].bits, want[i]) << i;
  EXPECT_EQ(operands[0].kind, Operand::Kind::single);
  EXPECT_EQ(operands[1].kind, Operand::Kind::real);
}

// A range of registers may have the name of one register, or of a variable, of the same braces.
TEST(ParserTest, RangesHaveNamesOfTheirOwn) {
  const ptx::Function f = onlyFunction(".reg .b32 a;\n.reg .b16 a<2>;\nmov.b32 {a0, a1}, a;\nmov.b32 a, {a1, a0};");
  const auto parts = f.elementsOf(f.operandsOf(f.instructions[0])[0]);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(f.registers[static_cast<size_t>(parts[0].index)].type, ptx::Type::b16);
  EXPECT_NE(parts[0].index, parts[1].index);
  const Operand &whole = f.operandsOf(f.instructions[0])[1];
  EXPECT_EQ(f.registers[static_cast<size_t>(whole.index)].type, ptx::Type::b32);
  EXPECT_EQ(f.operandsOf(f.instructions[1])[0].index, whole.index);
}

// Addresses have offsets of either sign, spaces anywhere; names need no percent sign.
TEST(ParserTest, Addresses) {
  const ptx::Function f = onlyFunction(
      ".reg .b64 %rd<8>; .reg .b32 value;\nld.global.u32 value, [ %rd7 + 0x10 ];\nld.global.u32 value, [%rd7+-4];\n"
      "ld.global.b32 { value }, [%rd7];");
  EXPECT_EQ(f.operandsOf(f.instructions[0])[1].bits, 16u);
  EXPECT_EQ(static_cast<int64_t>(f.operandsOf(f.instructions[1])[1].bits), -4);
  EXPECT_EQ(f.operandsOf(f.instructions[2])[0].kind, Operand::Kind::vector);
}

// Braces scope registers and labels: a label may occur in two scopes.
TEST(ParserTest, BracesScopeLabels) {
  const ptx::Function f = onlyFunction(".reg .pred %p;\n{ .reg .pred done; wait: @!done bra.uni wait; }\n{ .reg .pred "
                                       "done; wait: @done bra wait; bra out; }\nout: ret;");
  EXPECT_EQ(f.labels[static_cast<size_t>(f.operandsOf(f.instructions[0])[0].index)], 0);
  EXPECT_EQ(f.labels[static_cast<size_t>(f.operandsOf(f.instructions[1])[0].index)], 1);
  EXPECT_EQ(f.labels[static_cast<size_t>(f.operandsOf(f.instructions[2])[0].index)], 3);
  EXPECT_TRUE(f.instructions[0].guardNegated);
}

// Lines of the C++ source are those of .loc, with or without an inlined call.
TEST(ParserTest, SourceLines) {
  const ptx::Module m = ptx::parse(module(".file 1 \"a.cc\"\n.visible .entry k() {\n.loc 1 22 10\nret;\n.loc 1 30 3, "
                                          "function_name $info+5, inlined_at 1 40 2\nret;\n}\n"));
  EXPECT_EQ(m.functions[0].instructions[0].place.sourceLine, 22);
  EXPECT_EQ(m.functions[0].instructions[1].place.sourceLine, 30);
  EXPECT_EQ(m.files.at(1), "a.cc");
}

// An error about text that is not PTX has its line.
TEST(ParserTest, MistakesHaveALine) {
  for (const auto &[body, want] : std::vector<std::pair<std::string, std::string>>{
           {"mov.u32 %r0, 1;", "line 5: expected a register, but '%r0' is declared nowhere"},
           {"bra nowhere;\n}", "expected a label 'nowhere'"},
           {".reg .b32 %r;\nadd.u32 %r, %r 1;", "line 6: expected ',', but got '1'"},
           {".reg .b32 %r;\n.reg .b32 %r;", "line 6: expected a new register instead of '%r'"},
           {".reg .b99 %r;", "line 5: expected a register's type, but got 'b99'"},
           {"/* no end", "line 5: expected '*/'"},
           {"{", "expected an instruction, but got the end of the text"}})
    try {
      Memory memory;
      buildProgram(std::make_shared<ptx::Module>(ptx::parse(module(".visible .entry k() {\n" + body + "\n"))), "k",
                   memory);
      ADD_FAILURE() << body;
    } catch (const Error &error) {
      EXPECT_NE(std::string(error.what()).find(want), std::string::npos) << error.what();
    }
}

// An invalid kernel is an error when it is launched; the other kernels of its module run.
TEST(ParserTest, MistakesAreTheirKernels) {
  for (const std::string odd :
       {".visible .entry odd() {\nmov.u32 %r0, 1;\n}", ".func (.reg .b32 %r) odd() {\nadd.u32 %r, %r 1;\nret; }",
        ".visible .entry odd() .conjured 3 {\nret;\n}", ".visible .entry odd(.param .b99 x) { ret; }",
        ".visible .entry odd() { { bra nowhere; } }", ".visible .entry odd() { .conjured; ret; }",
        ".extern .func odd(.param .b99 x);"}) {
    Machine machine(module(odd + "\n.visible .entry k() { ret; }\n"));
    machine.run("k", {1, 1, 1}, {1, 1, 1}, {});
    Machine caller(module(odd + "\n.visible .entry k() { call odd; ret; }\n"));
    EXPECT_THROW(caller.run("k", {1, 1, 1}, {1, 1, 1}, {}), Error) << odd;
  }
  EXPECT_THROW(ptx::parse(module(".visible .entry odd() {\nret;\n")), Error); // nobody knows where it ends
}

// A text is for a version and a target that there are.
TEST(ParserTest, VersionsAndTargetsAreKnown) {
  const auto refusal = [](const std::string &head) -> std::string {
    try {
      Memory memory;
      buildProgram(std::make_shared<ptx::Module>(ptx::parse(head + ".visible .entry k() { ret; }\n")), "k", memory);
      return "";
    } catch (const Error &error) {
      return error.what();
    }
  };
  const std::string version = ".version 8.0\n", target = ".target sm_80\n";
  for (const char *known : {"sm_50", "sm_75", "sm_90a", "sm_100f", "sm_121a", "sm_80, debug"})
    EXPECT_EQ(refusal(version + ".target " + known + "\n"), "") << known;
  for (const char *known : {"1.0", "6.5", "9.4"})
    EXPECT_EQ(refusal(".version " + std::string(known) + "\n" + target), "") << known;
  const std::string targets =
      "PTX line 2: expected a .target that the simulator supports, such as sm_80 or sm_90a, but ";
  EXPECT_EQ(refusal(version + ".target sm_999\n"), targets + "got 'sm_999'");
  EXPECT_EQ(refusal(version + ".target sm_80a\n"), targets + "got 'sm_80a'");
  EXPECT_EQ(refusal(version + ".target sm_8\n"), targets + "got 'sm_8'");
  EXPECT_EQ(refusal(version),
            "PTX line 1: expected a .target that the simulator supports, such as sm_80 or sm_90a, but "
            "there is none");
  const std::string versions = "PTX line 1: expected a .version of PTX from 1.0 to 9.4, but ";
  EXPECT_EQ(refusal(".version 99.9\n" + target), versions + "got '99.9'");
  EXPECT_EQ(refusal(".version 8.9\n" + target), versions + "got '8.9'");
  EXPECT_EQ(refusal(target), versions + "there is none");
}

// An unknown instruction is refused if a kernel can reach it, and only then.
TEST(DecoderTest, RefusesWhatAKernelReaches) {
  Machine machine(module(".func unused() { conjure.u32; ret; }\n.visible .entry k() { ret; }\n"));
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {});
  Machine refused(module(".func used() { conjure.u32; ret; }\n.visible .entry k() { call used; ret; }\n"));
  EXPECT_THROW(refused.run("k", {1, 1, 1}, {1, 1, 1}, {}), Error);
}

// Widths are checked: an operand of another size is an error.
TEST(DecoderTest, ChecksWidths) {
  for (const std::string line :
       {"add.u32 %w, %r, 1;", "add.u64 %w, %r, 1;", "mov.b64 %r, %w;", "setp.eq.u32 %r, %r, 1;"}) {
    Machine machine(kernel(1, ".reg .b32 %r; .reg .b64 %w;", line));
    EXPECT_THROW(machine.run("k", {1, 1, 1}, {1, 1, 1}, {0}), Error) << line;
  }
}

// The sides of a branch reconverge at its immediate post-dominator: after an if, at a loop's exit, nowhere if one side
// returns.
TEST(FlowTest, MeetingPoints) {
  const ptx::Function f = onlyFunction(".reg .pred %p;\n"
                                       "@%p bra other;\nfoo;\nbra both;\nother: foo;\nboth: foo;\n" // 0 … 4
                                       "loop: @%p bra out;\nfoo;\nbra loop;\nout: foo;\n"           // 5 … 8
                                       "@%p bra leave;\nret;\nleave: ret;");                        // 9 … 11
  const std::vector<int> points = ptx::meetingPoints(f);
  EXPECT_EQ(points[0], 4);
  EXPECT_EQ(points[5], 8);
  EXPECT_EQ(points[9], -1);
}

// --- Names of places in findings -------------------------------------------------------------------------------------

// Names of places in findings: parts of shared memory, from comments in the text, and the view and the element of an
// address.

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
