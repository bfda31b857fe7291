// Branches, loops, calls and barriers where lanes part.

#include "runtime/simulator/Printf.h"
#include "test/expect_error.h"
#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>

namespace kiln::simulator::test {

/// Results, one word a thread, of a kernel body that leaves them in %r0.
static std::vector<uint64_t> results(const std::string &body, int threads = 64, Order order = Order::forward) {
  Machine machine(kernel(1, ".reg .b32 %r<8>; .reg .pred %q<4>; .reg .b64 %w, %at;",
                         body + "\ncvt.u64.u32 %w, %r0;\nadd.u64 %at, %p0, %o;\nst.global.u64 [%at], %w;"));
  const uint64_t *out = machine.buffer(std::vector<uint64_t>(static_cast<size_t>(threads)));
  machine.run("k", {1, 1, 1}, {threads, 1, 1}, {address(out)}, 0, {.order = order});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  return {out, out + threads};
}

// A loop whose length differs by lane, with a break in the middle.
TEST(BranchTest, LoopsOfDifferentLength) {
  const std::vector<uint64_t> got = results(
      "mov.u32 %r0, 0;\nmov.u32 %r1, 0;\nloop:\nsetp.ge.u32 %q0, %r1, %t;\n@%q0 bra done;\nadd.u32 %r0, %r0, %r1;\n"
      "setp.eq.u32 %q1, %r0, 21;\n@%q1 bra done;\nadd.u32 %r1, %r1, 1;\nbra loop;\ndone:");
  for (uint32_t t = 0; t < 64; ++t) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < t && sum != 21; ++i)
      sum += i;
    EXPECT_EQ(got[t], sum) << t;
  }
}

// Both sides of a branch run, and the code after it runs once for all lanes together, as activemask shows.
TEST(BranchTest, SidesMeetAgain) {
  const std::vector<uint64_t> got =
      results("setp.lt.u32 %q0, %t, 10;\n@%q0 bra low;\nmov.u32 %r1, 1;\nbra both;\nlow:\nmov.u32 %r1, 2;\nboth:\n"
              "activemask.b32 %r0;",
              32);
  EXPECT_EQ(got, std::vector<uint64_t>(32, 0xffffffff));
}

// A table of targets, by lane.
TEST(BranchTest, IndexedBranch) {
  const std::vector<uint64_t> got = results(
      "rem.u32 %r1, %t, 3;\ntable: .branchtargets a, b, c;\nbrx.idx %r1, table;\na: mov.u32 %r0, 100; bra end;\n"
      "b: mov.u32 %r0, 200; bra end;\nc: mov.u32 %r0, 300;\nend:");
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(got[t], (t % 3 + 1) * 100) << t;
}

// No lane waits for lanes that have returned early.
TEST(BranchTest, EarlyExit) {
  Machine machine(kernel(1, ".reg .pred %q; .reg .b64 %at;",
                         "setp.lt.u32 %q, %t, 5;\n@%q ret;\nsetp.eq.u32 %q, %t, 40;\n@%q exit;\nbar.sync 0;\nadd.u64 "
                         "%at, %p0, %o;\nst.global.u64 [%at], 1;"));
  const uint64_t *out = machine.buffer(std::vector<uint64_t>(64));
  machine.run("k", {1, 1, 1}, {64, 1, 1}, {address(out)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  for (uint32_t t = 0; t < 64; ++t)
    EXPECT_EQ(out[t], t >= 5 && t != 40) << t;
}

// A function that calls itself to a different depth in each lane, with locals and parameters.
TEST(CallTest, RecursionOfDivergentDepth) {
  Machine machine(
      module(".func (.param .b32 result) factorial(.param .b32 n) {\n.reg .b32 %r<4>; .reg .pred %q;\n.local .align 4 "
             ".b32 kept;\n"
             "ld.param.u32 %r0, [n];\nst.local.u32 [kept], %r0;\nmov.u32 %r1, 1;\nsetp.le.u32 %q, %r0, 1;\n@%q bra "
             "done;\n{\n.param .b32 argument;\n"
             ".param .b32 back;\nsub.u32 %r2, %r0, 1;\nst.param.b32 [argument], %r2;\ncall (back), factorial, "
             "(argument);\nld.param.b32 %r1, [back];\n}\n"
             "ld.local.u32 %r3, [kept];\nmul.lo.u32 %r1, %r1, %r3;\ndone:\nst.param.b32 [result], %r1;\nret;\n}\n"
             ".visible .entry k(.param .u64 k0) {\n.reg .b32 %r<3>; .reg .b64 %rd<2>;\nmov.u32 %r0, %tid.x;\nrem.u32 "
             "%r1, %r0, 11;\n{\n"
             ".param .b32 argument;\n.param .b32 back;\nst.param.b32 [argument], %r1;\ncall (back), factorial, "
             "(argument);\nld.param.b32 %r2, [back];\n}\n"
             "ld.param.u64 %rd0, [k0];\nmul.wide.u32 %rd1, %r0, 4;\nadd.u64 %rd0, %rd0, %rd1;\nst.global.u32 [%rd0], "
             "%r2;\nret;\n}\n"));
  const uint32_t *out = machine.buffer(std::vector<uint32_t>(32));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {address(out)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  for (uint32_t t = 0; t < 32; ++t) {
    uint32_t want = 1;
    for (uint32_t i = 2; i <= t % 11; ++i)
      want *= i;
    EXPECT_EQ(out[t], want) << t;
  }
}

// After a barrier every thread sees the earlier stores of the others, whichever warp runs first.
TEST(BarrierTest, OrdersAllWarps) {
  for (const Order order : {Order::forward, Order::reverse, Order::random}) {
    const std::vector<uint64_t> got =
        results("{ .shared .b32 place[128];\nmov.u32 %r1, place;\nmad.lo.u32 %r2, %t, 4, %r1;\nst.shared.u32 [%r2], "
                "%t;\nbar.sync 0;\n"
                "sub.u32 %r3, 127, %t;\nmad.lo.u32 %r2, %r3, 4, %r1;\nld.shared.u32 %r0, [%r2]; }",
                128, order);
    for (uint32_t t = 0; t < 128; ++t)
      EXPECT_EQ(got[t], 127 - t) << t;
  }
}

// A named barrier for two warps does not wait for the others.
TEST(BarrierTest, NamedBarriers) {
  const std::vector<uint64_t> got = results("{ .shared .b32 place;\nmov.u32 %r1, place;\nmov.u32 %r0, 0;\nsetp.ge.u32 "
                                            "%q0, %t, 64;\n@%q0 bra end;\nsetp.ge.u32 %q1, %t, 32;\n"
                                            "@%q1 bra second;\nst.shared.u32 [%r1], 77;\nbar.arrive 3, 64;\nbra "
                                            "end;\nsecond:\nbar.sync 3, 64;\nld.shared.u32 %r0, [%r1];\nend: }",
                                            96);
  for (uint32_t t = 0; t < 96; ++t)
    EXPECT_EQ(got[t], t >= 32 && t < 64 ? 77u : 0u) << t;
}

/// The result in each thread of a barrier reduction of `threads` threads; the predicate is true in those below `held`.
static std::vector<uint64_t> reduced(const std::string &reduction, uint32_t threads, uint32_t held, Order order) {
  return results(fmt::format("setp.lt.u32 %q0, %t, {};\n{}", held, reduction), threads, order);
}

// All threads of the block get the reduction of all predicates: the count, all, or any.
TEST(BarrierTest, Reduces) {
  for (const Order order : {Order::forward, Order::reverse, Order::random})
    for (const uint32_t held : {0u, 1u, 70u, 96u}) {
      const auto expectAll = [&](const std::string &reduction, uint64_t want) {
        for (const uint64_t got : reduced(reduction, 96, held, order))
          ASSERT_EQ(got, want) << reduction << " of " << held;
      };
      expectAll("bar.red.popc.u32 %r0, 0, %q0;", held);
      expectAll("barrier.cta.red.popc.aligned.u32 %r0, 0, 96, !%q0;", 96 - held);
      expectAll("bar.red.and.pred %q1, 0, %q0;\nselp.u32 %r0, 1, 0, %q1;", held == 96);
      expectAll("bar.red.or.pred %q1, 0, %q0;\nselp.u32 %r0, 1, 0, %q1;", held > 0);
      expectAll("bar.red.or.pred %q0, 0, !%q0;\nselp.u32 %r0, 1, 0, %q0;", held < 96);
    }
}

// Each phase has its own result, even if a late warp resumes during the next phase: 1, 2 and 3 warps.
TEST(BarrierTest, ReductionsFollowEachOther) {
  for (const Order order : {Order::forward, Order::reverse, Order::random}) {
    const std::vector<uint64_t> got =
        results("mov.u32 %r0, 0;\nmov.u32 %r1, 0;\nagain:\nadd.u32 %r1, %r1, 32;\nsetp.lt.u32 %q0, %t, %r1;\n"
                "bar.red.popc.u32 %r2, 0, %q0;\nmad.lo.u32 %r0, %r0, 100, %r2;\nsetp.lt.u32 %q1, %r1, 96;\n"
                "@%q1 bra again;",
                96, order);
    for (const uint64_t each : got)
      EXPECT_EQ(each, 326496u);
  }
}

// A phase has a reduction in all threads or in none.
TEST(BarrierTest, MixedReductionIsFound) {
  Machine machine(kernel(1, ".reg .pred %q<2>; .reg .b32 %r;",
                         "setp.lt.u32 %q0, %t, 32;\n@%q0 bra plain;\nbar.red.popc.u32 %r, 1, 64, %q0;\nret;\n"
                         "plain:\nbar.sync 1, 64;"));
  machine.run("k", {1, 1, 1}, {64, 1, 1}, {0});
  EXPECT_EQ(machine.found(),
            std::vector<std::string>{"barrier: barrier 1 was begun without a reduction, but is joined with one"});
}

// A barrier that only some lanes of a warp reach is found.
TEST(BarrierTest, DivergentBarrierIsFound) {
  Machine machine(kernel(1, ".reg .pred %q;", "setp.lt.u32 %q, %t, 7;\n@%q bar.sync 0;\nbar.sync 0;"));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {0});
  ASSERT_FALSE(machine.found().empty());
  EXPECT_EQ(machine.found()[0].substr(0, 7), "barrier");
}

// A kernel that never ends is given up.
TEST(LaunchTest, GivesUpWhatNeverEnds) {
  Machine machine(kernel(1, ".reg .b32 %r;", "mov.b32 %r, 0;\nagain:\nadd.u32 %r, %r, 1;\nbra again;"));
  EXPECT_THROW(machine.run("k", {1, 1, 1}, {32, 1, 1}, {0}, 0, {.maxSteps = 100000}), Error);
}

// The exact number of executed instructions of each warp: those with a false guard count, and the simulator's internal
// steps do not.
TEST(LaunchTest, GivesUpAfterSoManyInstructions) {
  const std::string text = module(".visible .entry k() {\n.reg .b32 %r; .reg .pred %q;\nmov.u32 %r, %tid.x;\n"
                                  "setp.lt.u32 %q, %r, 5;\n@%q add.u32 %r, %r, 1;\n@%q bra end;\nadd.u32 %r, %r, 1;\n"
                                  "end:\nbar.sync 0;\nadd.u32 %r, %r, 1;\nret;\n}\n");
  const auto run = [&](int64_t steps, int threads) {
    Machine machine(text);
    machine.run("k", {1, 1, 1}, {threads, 1, 1}, {}, 0, {.maxSteps = steps});
  };
  run(7, 5); // all lanes go to the end
  EXPECT_THROW(run(6, 5), Error);
  run(8, 37); // a warp goes round, then both its parts are one
  expectError([&] { run(7, 37); }, {"has not ended after 7 instructions, the last one at PTX line 13"});
  expectError([&] { run(1, 37); }, {"warp 0 has not ended after 1 instructions, the last one at PTX line 6"});
}

// The limit counts executed instructions of a warp, and not its waits for others.
TEST(LaunchTest, CountsInstructionsNotWaits) {
  Machine machine(kernel(1, ".reg .b32 %r; .reg .pred %q;",
                         "mov.u32 %r, 0;\nagain:\nbar.sync 0;\nadd.u32 %r, %r, 1;\nsetp.lt.u32 %q, %r, 1000;\n"
                         "@%q bra again;"));
  machine.run("k", {1, 1, 1}, {64, 1, 1}, {0}, 0, {.maxSteps = 10000});
  EXPECT_TRUE(machine.found().empty());
}

// Blocks that wait for one another all get their turn, even when there are more of them than threads and they start
// last to first.
TEST(LaunchTest, BlocksCanWaitForEachOther) {
  for (const Order order : {Order::forward, Order::reverse}) {
    Machine machine(kernel(
        1, ".reg .b32 %r<2>; .reg .pred %q;",
        "again:\nld.volatile.global.u32 %r0, [%p0];\nsetp.ne.u32 %q, %r0, %n0;\n@%q bra again;\nadd.u32 %r0, %r0, 1;\n"
        "st.volatile.global.u32 [%p0], %r0;"));
    const uint32_t *turn = machine.buffer<uint32_t>({0});
    machine.run("k", {6, 1, 1}, {1, 1, 1}, {address(turn)}, 0, {.order = order, .threads = 2});
    EXPECT_EQ(turn[0], 6u);
  }
}

// --- Calls, the stack and printf -------------------------------------------------------------------------------------

// Calls through registers, the stack of alloca, and printf: code that no compiler generates from correct programs, and
// the simulator's errors for it. Compiled code is in compiled_test.cc.

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
