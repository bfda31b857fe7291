// Limits of a PTX text, for every kind of memory and for calls. A text that exceeds one is refused or reported with its
// line. The texts below ptx/, from which damaged texts are made, are valid themselves.

#include "test/expect_error.h"
#include "test/paths.h"
#include "test/runtime/simulator/machine.h"
#include "test/temporary_folder.h"

#include <filesystem>
#include <fmt/format.h>

namespace kiln::simulator::test {

/// The message with which a text is refused, parsed or decoded.
static std::string refusal(const std::string &text) {
  try {
    Memory memory;
    buildProgram(std::make_shared<ptx::Module>(ptx::parse(module(text))), "k", memory);
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

// Sizes that no GPU has, or that no number of 64 bits holds, are refused with the line of the variable.
TEST(LimitsTest, VariablesHaveBounds) {
  const std::string kernel = ".visible .entry k() {\n", use = "\nld.shared.u32 %r, [x];\nret; }";
  for (const auto &[text, want] : std::vector<std::pair<std::string, std::string>>{
           {".global .b8 x[4294967296][4294967296][4294967296];", "line 4: expected a variable that fits memory"},
           {kernel + ".reg .b32 %r; .shared .b8 x[49153];" + use, "line 5: expected at most 49152 bytes of static sh"},
           {kernel + ".reg .b32 %r; .shared .b64 x[4294967296];" + use, "line 5: expected at most 49152 bytes of stat"},
           {kernel + ".local .b8 x[524289]; ret; }", "line 5: expected at most 524288 bytes of local memory"},
           {kernel + ".local .b8 x[4294967297]; ret; }", "line 5: expected an extent from 0 to 2^32"},
           {".visible .entry k(\n.param .b8 x[32765]) { ret; }", "line 5: expected at most 32764 bytes of parameters"},
           {".visible .entry k(.param .b8 x[4294967296]) { ret; }", "line 4: expected at most 32764 bytes of param"},
           {".visible .entry k() .maxntid 4294967296, 4294967296, 4294967296 { ret; }",
            "line 4: expected one to three numbers up to 2^20"},
           {".local .b32 x;", "expected variables in .local within a function"},
           {".param .b32 x;", "expected variables in .param within a function"},
           {".global .b32 x[2] = {1, 2, 3};\n" + kernel + ".reg .b64 %d; mov.u64 %d, x; ret; }",
            "line 4: expected at most 2 values for variable 'x', but got 3"},
           {".extern .global .b32 x;\n" + kernel + ".reg .b64 %d; mov.u64 %d, x; ret; }",
            "line 4: expected a definition of variable 'x'"},
           {".global .b32 x = " + std::string(100000, '{') + "1;", "line 4: expected braces at most 64 deep"},
           {kernel + ".reg .b32 %r<4>; mov.b32 %r99999999999999999999, 1; ret; }", "declared nowhere"}})
    EXPECT_NE(refusal(text).find(want), std::string::npos) << text.substr(0, 100) << ": " << refusal(text);
  EXPECT_EQ(refusal(kernel + ".reg .b32 %r; .shared .b8 x[49152];" + use), "");
  EXPECT_EQ(refusal(kernel + ".local .b8 x[524288]; ret; }"), "");
  EXPECT_EQ(refusal(".visible .entry k(.param .b8 x[32764]) { ret; }"), "");
}

// A block has as much shared memory as its target allows, static and dynamic together.
TEST(LimitsTest, SharedMemoryIsTheTargets) {
  for (const auto &[target, most] : std::vector<std::pair<std::string, uint32_t>>{{"sm_52", 49152},
                                                                                  {"sm_75", 65536},
                                                                                  {"sm_80", 166912},
                                                                                  {"sm_86", 101376},
                                                                                  {"sm_90a", 232448},
                                                                                  {"sm_120", 101376}})
    for (const uint32_t bytes : {0u, 1000u}) {
      const auto run = [&](uint32_t dynamic) {
        Machine machine(
            ".version 8.8\n.target " + target +
            fmt::format("\n.extern .shared .align 16 .b8 more[];\n.visible .entry k() {{\n.shared .b8 x[{}];\n"
                        ".reg .b32 %r;\nmov.u32 %r, x;\nmov.u32 %r, more;\nret; }}",
                        std::max(bytes, 1u)));
        machine.run("k", {1, 1, 1}, {1, 1, 1}, {}, dynamic);
      };
      const uint32_t fixed = bytes ? 1008 : 16; // up to where dynamic memory may begin
      run(most - fixed);
      expectError([&] { run(most - fixed + 1); },
                  {fmt::format("kernel 'k': expected at most {} bytes of shared memory, the limit of a block on its "
                               "target {}, but got {} static and {} dynamic",
                               most, target, fixed, most - fixed + 1)});
    }
}

// A kernel runs only in blocks of .reqntid's extents, and of at most .maxntid's threads.
TEST(LimitsTest, BlocksAreAsStated) {
  const auto refusalOf = [](const std::string &stated, const Extents &block) -> std::string {
    Machine machine(module(".visible .entry k() " + stated + " { ret; }"));
    try {
      machine.run("k", {1, 1, 1}, block, {});
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusalOf(".reqntid 16, 4", {16, 4, 1}), "");
  EXPECT_EQ(refusalOf(".reqntid 16, 4", {64, 1, 1}),
            "kernel 'k': expected a block of 16x4x1 threads, as its .reqntid says, but got 64x1x1");
  EXPECT_EQ(refusalOf(".maxntid 16, 4", {64, 1, 1}), "");
  EXPECT_EQ(refusalOf(".maxntid 16, 4", {65, 1, 1}), "kernel 'k': expected a block of 1 to 64 threads, but got 65x1x1");
}

// The extents of a matrix are those of its shape's name; other names are errors.
TEST(LimitsTest, ShapesOfMatrices) {
  for (const std::string shape : {"m2147483647n16k16", "m256n16k16", "m16n0k16", "m16n16k", "m16n16", "m16k16n16",
                                  "m16n16k16x", "m16n-16k16", "m99999999999n8k8"}) {
    const std::string text = refusal(".visible .entry k(.param .u64 p) {\n.reg .b32 %r<8>; .reg .b64 %d;\n"
                                     "wmma.load.a.sync.aligned." +
                                     shape + ".row.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%d];\nret; }");
    EXPECT_NE(text.find("PTX line 6: "), std::string::npos) << shape << ": " << text;
  }
}

// Arguments of a call must be variables of the caller, and a kernel cannot be called.
TEST(LimitsTest, ArgumentsOfCalls) {
  const std::string callee = ".func f(.param .b32 x) { ret; }\n";
  EXPECT_NE(refusal(callee + ".visible .entry k(.param .b32 p) {\ncall f, (p);\nret; }").find("PTX line 6: "),
            std::string::npos);
  EXPECT_NE(refusal(callee + ".visible .entry k() {\n.shared .b32 s;\ncall f, (s);\nret; }").find("PTX line 7: "),
            std::string::npos);
  EXPECT_NE(refusal(".visible .entry k(.param .b32 p) {\n{ .param .b32 a; call k, (a); }\nret; }").find("a kernel"),
            std::string::npos);
}

// A kernel's parameters are found by name, after any other declarations.
TEST(LimitsTest, ParametersBehindResults) {
  Machine machine(module(".visible .entry (.param .b64 none) k(.param .u64 a, .param .u64 b) {\n.reg .b64 %d<2>;\n"
                         "ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\nst.global.u64 [%d0], %d1;\nret;\n}\n"));
  const uint64_t *out = machine.buffer<uint64_t>({0});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(out), 77});
  EXPECT_EQ(out[0], 77u);
}

// A recursion without end is found at the line of the call, with and without local memory, and the launch ends.
TEST(LimitsTest, RecursionIsBounded) {
  for (const std::string variable : {"", ".local .b32 x[32];"}) {
    Machine machine(module(".func f() {\n" + variable + "\ncall f;\nret;\n}\n.visible .entry k() { call f; ret; }\n"));
    machine.run("k", {1, 1, 1}, {32, 1, 1}, {});
    ASSERT_EQ(machine.found().size(), 1u);
    EXPECT_NE(machine.found()[0].find("bounds: calls lie within each other too deep"), std::string::npos);
    EXPECT_EQ(machine.findings.list()[0].place.line, 6);
  }
}

// A kernel without registers runs.
TEST(LimitsTest, KernelsOfNothing) {
  Machine machine(module(".visible .entry k() { ret; }\n"));
  machine.run("k", {2, 1, 1}, {40, 1, 1}, {});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
}

// An asynchronous copy of no bytes needs no source.
TEST(LimitsTest, CopiesOfNothing) {
  for (const Delivery delivery : {Delivery::late, Delivery::early}) {
    Machine machine(kernel(1, ".shared .align 16 .b32 place[4];\n.reg .b32 %r<3>; .reg .b64 %z;",
                           "mov.u32 %r0, place;\nmov.u32 %r1, 0;\nmov.u64 %z, 0;\nst.shared.u32 [%r0], 9;\n"
                           "cp.async.ca.shared.global [%r0], [%z], 4, %r1;\ncp.async.wait_all;\n"
                           "ld.shared.u32 %r2, [%r0];\nst.global.u32 [%p0], %r2;"));
    const uint32_t *out = machine.buffer<uint32_t>({7});
    machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(out)}, 0, {.delivery = delivery});
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    EXPECT_EQ(out[0], 0u);
  }
}

// Lanes in different functions at the same time have separate constants and registers.
TEST(LimitsTest, FunctionsBesideEachOther) {
  const auto function = [](const std::string &name, const std::string &first, int step) {
    return fmt::format(".func (.param .b32 r) {}() {{\n{}\n.reg .b32 %i, %s; .reg .pred %q;\nmov.u32 %i, 0;\n"
                       "mov.u32 %s, 0;\nagain:\nadd.u32 %s, %s, {};\nadd.u32 %i, %i, 1;\nsetp.lt.u32 %q, %i, 5000;\n"
                       "@%q bra again;\nst.param.b32 [r], %s;\nret;\n}}\n",
                       name, first, step);
  };
  Machine machine(
      module(function("three", "", 3) + function("five", ".reg .b64 %w; mov.u64 %w, 0x123456789;", 5) +
             ".visible .entry k(.param .u64 p) {\n.reg .b32 %r<3>; .reg .b64 %d<2>; .reg .pred %q;\n"
             ".param .b32 back;\nld.param.u64 %d0, [p];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %d1, %r0, 4;\n"
             "add.u64 %d0, %d0, %d1;\nand.b32 %r1, %r0, 1;\nsetp.eq.u32 %q, %r1, 0;\n@%q bra even;\n"
             "call (back), five;\nld.param.b32 %r2, [back];\nbra both;\neven:\n"
             "call (back), three;\nld.param.b32 %r2, [back];\nboth:\nst.global.u32 [%d0], %r2;\nret;\n}\n"));
  const uint32_t *out = machine.buffer(std::vector<uint32_t>(32));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {address(out)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(out[t], t % 2 ? 25000u : 15000u) << t;
}

// The texts from which damaged ones are made run, and do nothing wrong.
TEST(LimitsTest, SeedsAreRight) {
  int count = 0;
  for (const auto &entry : std::filesystem::directory_iterator(kiln::test::sourcePath("test/runtime/simulator/ptx"))) {
    Machine machine(readText(entry.path()));
    const std::vector<uint32_t> ones(1024, 1);
    machine.run(entry.path().stem(), {1, 1, 1}, {64, 1, 1},
                {address(machine.buffer(ones)), address(machine.buffer(ones)), 64}, 256);
    EXPECT_EQ(machine.found(), std::vector<std::string>{}) << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 7);
}

} // namespace kiln::simulator::test
