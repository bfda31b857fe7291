// Calls through registers, the stack of alloca, and printf: code that no compiler generates from correct programs, and
// the simulator's errors for it. Compiled code is in compiled_test.cc.

#include "runtime/simulator/Printf.h"
#include "test/expect_error.h"
#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>

namespace kiln::simulator::test {

// --- Calls through registers ---------------------------------------------------------------------------------------

/// Functions of one signature, one of another, and the code after the kernel's head, with its result in %r0.
static std::string callingModule(const std::string &declarations, const std::string &body) {
  const auto function = [](const std::string &name, const std::string &compute) {
    return fmt::format(".func (.param .b32 out) {}(.param .b32 in) {{\n.reg .b32 %a;\nld.param.b32 %a, [in];\n{}\n"
                       "st.param.b32 [out], %a;\nret;\n}}\n",
                       name, compute);
  };
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + function("twice", "shl.b32 %a, %a, 1;") +
         function("next", "add.u32 %a, %a, 1;") + ".func (.param .b32 out) nobody() { ret; }\n" + declarations +
         ".visible .entry k(.param .u64 to) {\n.reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %q;\n"
         ".param .b32 x; .param .b32 y;\nmov.u32 %r0, %tid.x;\nst.param.b32 [x], %r0;\n"
         "form: .callprototype (.param .b32 _) _ (.param .b32 _);\nsome: .calltargets next;\n" +
         body +
         "\nld.param.u64 %d0, [to];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d1, %r1, 4;\nadd.u64 %d0, %d0, %d1;\n"
         "st.global.u32 [%d0], %r0;\nret;\n}\n";
}

/// The results of 32 threads, and the findings.
static std::pair<std::vector<uint32_t>, std::vector<std::string>>
calling(const std::string &declarations, const std::string &body, const std::string &varies = "") {
  Machine machine(callingModule(declarations, body));
  machine.varies = varies;
  const uint32_t *out = machine.buffer(std::vector<uint32_t>(32, 77));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {address(out)});
  return {std::vector<uint32_t>(out, out + 32), machine.found()};
}

static const std::string odd =
    "and.b32 %r1, %r0, 1;\nsetp.eq.u32 %q, %r1, 1;\nmov.u64 %d2, twice;\nmov.u64 %d3, next;\n"
    "selp.b64 %d3, %d3, %d2, %q;\n";
static const std::string back = "\nld.param.b32 %r0, [y];";

// Each lane calls its own function, by a prototype or an array of functions, and then the lanes reconverge.
TEST(IndirectCallTest, LanesGoApartAndMeet) {
  for (const std::string form : {"form", "table"}) {
    const auto [got, found] = calling(".global .u64 table[2] = {twice, next};\n",
                                      odd + "call (y), %d3, (x), " + form + ";" + back +
                                          "\nactivemask.b32 %r2;\nsetp.ne.u32 %q, %r2, -1;\n@%q mov.u32 %r0, 0;",
                                      "a GPU's lanes need not go on together");
    EXPECT_EQ(found, std::vector<std::string>{}) << form;
    for (uint32_t t = 0; t < 32; ++t)
      EXPECT_EQ(got[t], t % 2 ? t + 1 : 2 * t) << form << t;
  }
}

// A false guard calls nothing.
TEST(IndirectCallTest, GuardsHold) {
  const auto [got, found] = calling(
      ".global .u32 cells[32];\n.func put(.param .b32 in) {\n.reg .b32 %a, %t; .reg .b64 %c, %o;\n"
      "ld.param.b32 %a, [in];\nadd.u32 %a, %a, 1;\nmov.u32 %t, %tid.x;\nmul.wide.u32 %o, %t, 4;\nmov.u64 %c, cells;\n"
      "add.u64 %c, %c, %o;\nst.global.u32 [%c], %a;\nret;\n}\n",
      odd + "mov.u64 %d3, put;\nplain: .callprototype _ (.param .b32 _);\n@%q call %d3, (x), plain;\n"
            "mov.u32 %r1, %tid.x;\nmul.wide.u32 %d1, %r1, 4;\nmov.u64 %d2, cells;\nadd.u64 %d2, %d2, %d1;\n"
            "ld.global.u32 %r0, [%d2];");
  EXPECT_EQ(found, std::vector<std::string>{});
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], t % 2 ? t + 1 : 0) << t;
}

// The function's address is loaded from an array of addresses, and an alias stands for its
// function.
TEST(IndirectCallTest, TablesAndAliases) {
  const auto [got, found] =
      calling(".func (.param .b32 out) other(.param .b32 in);\n.global .u64 table[2] = {0, other};\n"
              ".global .u64 object[1] = {generic(table)};\n.alias other, twice;\n",
              "mov.u64 %d2, object;\nld.global.u64 %d2, [%d2];\nld.global.u64 %d2, [%d2+8];\n"
              "call (y), %d2, (x), form;" +
                  back);
  EXPECT_EQ(found, std::vector<std::string>{});
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(got[t], 2 * t) << t;
}

// An address without a function, a function of another signature, and one that the call does not list are errors; other
// lanes continue.
TEST(IndirectCallTest, WrongTargetsAreFound) {
  const std::string third = "setp.eq.u32 %q, %r0, 3;\n";
  for (const auto &[body, want] : std::vector<std::pair<std::string, std::string>>{
           {"mov.u64 %d2, next;\n@%q mov.u64 %d2, 4096;\ncall (y), %d2, (x), form;",
            "trap: calls 0x1000, where no function lies"},
           {"mov.u64 %d2, next;\n@%q mov.u64 %d2, nobody;\ncall (y), %d2, (x), form;",
            "trap: calls 'nobody' with results and parameters of other sizes than it has"},
           {"mov.u64 %d2, next;\n@%q mov.u64 %d2, twice;\ncall (y), %d2, (x), some;",
            "trap: calls 'twice', which is not among the targets that the call names"}}) {
    const auto [got, found] = calling("", third + body + back);
    EXPECT_EQ(found, std::vector<std::string>{want});
    for (uint32_t t = 0; t < 32; ++t)
      EXPECT_EQ(got[t], t == 3 ? 77 : t + 1) << t;
  }
}

// A recursion by address ends, and is an error if it is too deep.
TEST(IndirectCallTest, RecursionIsBounded) {
  Machine machine(module(".func f();\n.global .u64 table[1] = {f};\n.func f() {\n.reg .b64 %d;\nmov.u64 %d, table;\n"
                         "ld.global.u64 %d, [%d];\ncall %d, table;\nret;\n}\n"
                         ".visible .entry k() { call f; ret; }\n"));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {});
  ASSERT_EQ(machine.found().size(), 1u);
  EXPECT_NE(machine.found()[0].find("bounds: calls lie within each other too deep"), std::string::npos);
}

// Calls with missing parts are errors.
TEST(IndirectCallTest, FormsAreChecked) {
  const auto refused = [](const std::string &body, const std::string &want) {
    expectError([&] { calling("", "mov.u64 %d2, next;\n" + body); }, {want});
  };
  refused("call (y), %d2, (x);", "expected a prototype or a list of targets of an indirect call in 'call'");
  refused("call (y), %d2, (x, x), form;", "expected 1 arguments for the functions called, but got 2, in 'call'");
  refused("call (y), next, (x), form;", "expected no list of targets where the function is named in 'call'");
  refused("add.u32 %r0, %r0.b0, 1;", "expected a whole register, but got its part '.b0', in 'add.u32'");
  refused("add.u32 %r0, -%r0, 1;", "expected a number after '-', but got '%r0'");
}

// --- The stack -----------------------------------------------------------------------------------------------------

static std::vector<std::string> foundOnStack(const std::string &body) {
  Machine machine(module(".func leaf() {\n.local .b32 x;\nst.local.b32 [x], 9;\nret;\n}\n.visible .entry k() {\n"
                         ".reg .b64 %d<6>; .reg .b32 %r<4>; .reg .pred %q;\n" +
                         body + "\nret;\n}\n"));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {});
  return machine.found();
}

// Each allocation is new memory at a multiple of the alignment. Called functions do not touch it, and saved pointers
// are restored.
TEST(StackTest, AllocationsLieApart) {
  EXPECT_EQ(
      foundOnStack("stacksave.u64 %d0;\nmov.u32 %r0, %laneid;\ncvt.u64.u32 %d1, %r0;\nadd.u64 %d1, %d1, 4;\n"
                   "alloca.u64 %d2, %d1, 64;\nst.local.u32 [%d2], %r0;\nalloca.u64 %d3, 8;\nst.local.u64 [%d3], 1;\n"
                   "call leaf;\nld.local.u32 %r1, [%d2];\nsetp.ne.u32 %q, %r1, %r0;\n@%q trap;\n"
                   "and.b64 %d4, %d2, 63;\nsetp.ne.u64 %q, %d4, 0;\n@%q trap;\n"
                   "stackrestore.u64 %d0;\nstacksave.u64 %d5;\nsetp.ne.u64 %q, %d5, %d0;\n@%q trap;"),
      std::vector<std::string>{});
}

// Too much, memory that was taken anew and has no value yet, and a stack that was never so.
TEST(StackTest, MistakesAreFound) {
  EXPECT_EQ(foundOnStack("mov.u64 %d0, 1000000;\nalloca.u64 %d1, %d0;"),
            std::vector<std::string>{
                "bounds: takes 1000000 bytes of local memory in addition to 0, but a thread has 524288"});
  EXPECT_EQ(foundOnStack("stacksave.u64 %d0;\nalloca.u64 %d1, 8;\nst.local.u32 [%d1], 1;\nstackrestore.u64 %d0;\n"
                         "alloca.u64 %d1, 8;\nld.local.u32 %r0, [%d1];\nadd.u32 %r0, %r0, 1;"),
            std::vector<std::string>{"uninitialised: reads 4 bytes at 0 in .local, to which nothing was written"});
  EXPECT_EQ(foundOnStack("alloca.u64 %d1, 8;\nmov.u64 %d0, 99;\nstackrestore.u64 %d0;"),
            std::vector<std::string>{"bounds: restores the stack to 99, but it lies from 0 to 8"});
}

// --- Formats -------------------------------------------------------------------------------------------------------

/// The output of a printf format with words of 8 bytes; texts are at odd addresses.
static std::string print(const std::string &format, std::vector<uint64_t> words) {
  size_t next = 0;
  const std::optional<Printed> printed =
      formatted(format, {.next = [&](int) { return next < words.size() ? std::optional(words[next++]) : std::nullopt; },
                         .text = [](uint64_t address) { return std::optional(std::string(address, 'x')); }});
  return printed ? fmt::format("{}/{}", printed->text, printed->values) : "nothing";
}

// C's formats, with any number of values. Other text is printed unchanged.
TEST(PrintfTest, Formats) {
  const auto real = [](double value) { return std::bit_cast<uint64_t>(value); };
  EXPECT_EQ(print("%d %5u|%-5i|%05d|%+d", {uint64_t(-3), 7, 8, 9, 4}), "-3     7|8    |00009|+4/5");
  EXPECT_EQ(print("%x %#X %o %llx %ld", {255, 255, 8, uint64_t(1) << 40, uint64_t(-5)}), "ff 0XFF 10 10000000000 -5/5");
  EXPECT_EQ(print("%hhd %hu", {0x1ff, 0x12345}), "-1 9029/2");
  EXPECT_EQ(print("%f %.2e %g %a", {real(1.5), real(12345), real(0.1), real(2)}), "1.500000 1.23e+04 0.1 0x1p+1/4");
  EXPECT_EQ(print("%c%c %s|%5s|%.2s", {'a', 'b', 3, 2, 5}), "ab xxx|   xx|xx/5");
  EXPECT_EQ(print("%*d|%-*d|%.*f", {4, 1, 4, 2, 1, real(0.25)}), "   1|2   |0.2/6");
  EXPECT_EQ(print("100%% %s %q %", {0}), "100% (null) %q %/1");
  EXPECT_EQ(print("%d %d", {1}), "nothing");
}

} // namespace kiln::simulator::test
