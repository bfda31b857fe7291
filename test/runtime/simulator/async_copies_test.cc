// cp.async: the data that a thread reads before and after its wait, for every time of completion.

#include "test/runtime/simulator/machine.h"

namespace kiln::simulator::test {

/// Runs one thread that copies 4 bytes twice, in two groups, and reads both copies after `wait`.
static std::vector<uint32_t> afterWaiting(const std::string &wait, Delivery delivery) {
  Machine machine(kernel(
      2, ".shared .align 16 .b32 place[4];\n.reg .b32 %r<3>;",
      "mov.u32 %r0, place;\ncp.async.ca.shared.global [%r0], [%p0], 4;\ncp.async.commit_group;\n"
      "cp.async.ca.shared.global [%r0+4], [%p0+4], 4;\ncp.async.commit_group;\n" +
          wait + "\nld.shared.u32 %r1, [%r0];\nld.shared.u32 %r2, [%r0+4];\nst.global.v2.u32 [%p1], {%r1, %r2};"));
  const uint32_t *in = machine.buffer<uint32_t>({11, 22});
  const uint32_t *out = machine.buffer<uint32_t>({0, 0});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(in), address(out)}, 0, {.delivery = delivery});
  return {out, out + 2};
}

// A wait for all but one group completes the first. Without a wait, a late copy is not complete.
TEST(AsyncCopyTest, LandsWhenItsGroupIsWaitedFor) {
  const uint32_t poison = 0xffffffff;
  EXPECT_EQ(afterWaiting("", Delivery::late), (std::vector<uint32_t>{poison, poison}));
  EXPECT_EQ(afterWaiting("cp.async.wait_group 1;", Delivery::late), (std::vector<uint32_t>{11, poison}));
  EXPECT_EQ(afterWaiting("cp.async.wait_group 0;", Delivery::late), (std::vector<uint32_t>{11, 22}));
  EXPECT_EQ(afterWaiting("cp.async.wait_all;", Delivery::late), (std::vector<uint32_t>{11, 22}));
  EXPECT_EQ(afterWaiting("", Delivery::early), (std::vector<uint32_t>{11, 22}));
  EXPECT_EQ(afterWaiting("cp.async.wait_group 0;", Delivery::random), (std::vector<uint32_t>{11, 22}));
}

// A thread that ends without a wait may write to memory that is another block's by then, with or without a
// group.
TEST(AsyncCopyTest, IsWaitedForBeforeItsThreadEnds) {
  for (const bool waits : {false, true}) {
    Machine machine(kernel(1, ".shared .align 16 .b32 place[4];\n.reg .b32 %r;",
                           std::string("mov.u32 %r, place;\ncp.async.cg.shared.global [%r], [%p0], 16;\n") +
                               (waits ? "cp.async.wait_all;" : "cp.async.commit_group;")));
    machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(machine.buffer<uint32_t>({1, 2, 3, 4}))});
    EXPECT_EQ(machine.found(),
              waits ? std::vector<std::string>{}
                    : std::vector<std::string>{"in-flight: a thread ends, but has not waited for a copy that it began: "
                                               "the bytes may come when the shared memory is another block's"});
  }
}

// A source size below the copy's fills the rest with zeros, and nothing beyond it is read.
TEST(AsyncCopyTest, FillsWithZeros) {
  Machine machine(kernel(
      2, ".shared .align 16 .b32 place[4];\n.reg .b32 %r<6>;",
      "mov.u32 %r0, place;\nmov.u32 %r5, 8;\ncp.async.cg.shared.global [%r0], [%p0], 16, %r5;\ncp.async.wait_all;\n"
      "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r0];\nst.global.v4.u32 [%p1], {%r1, %r2, %r3, %r4};"));
  const uint32_t *in = machine.buffer<uint32_t>({5, 6}); // 16 bytes are not there
  const uint32_t *out = machine.buffer<uint32_t>({9, 9, 9, 9});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(in), address(out)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  EXPECT_EQ(std::vector<uint32_t>(out, out + 4), (std::vector<uint32_t>{5, 6, 0, 0}));
}

/// The result of a copy with these operands after its addresses, of 16 bytes, and its modifiers.
static std::vector<uint32_t> afterCopy(const std::string &modifiers, const std::string &operands) {
  Machine machine(
      kernel(2, ".shared .align 16 .b32 place[4];\n.reg .b32 %r<6>;\n.reg .b64 %policy;\n.reg .pred %yes, %no;",
             "mov.u32 %r0, place;\nsetp.eq.u32 %yes, %r0, %r0;\nnot.pred %no, %yes;\n"
             "createpolicy.fractional.L2::evict_first.b64 %policy, 1.0;\ncp.async." +
                 modifiers + " [%r0], [%p0], 16" + operands +
                 ";\ncp.async.wait_all;\n"
                 "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r0];\nst.global.v4.u32 [%p1], {%r1, %r2, %r3, %r4};"));
  const uint32_t *in = machine.buffer<uint32_t>({5, 6, 7, 8});
  const uint32_t *out = machine.buffer<uint32_t>({9, 9, 9, 9});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(in), address(out)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  return {out, out + 4};
}

// After the size there may be the number of source bytes or a predicate to ignore the source, and a hint's policy.
TEST(AsyncCopyTest, TakesEveryFormOfOperands) {
  const std::vector<uint32_t> all = {5, 6, 7, 8}, half = {5, 6, 0, 0}, none = {0, 0, 0, 0};
  for (const std::string cached : {"ca", "cg"})
    for (const std::string prefetch : {"", ".L2::64B", ".L2::128B", ".L2::256B"})
      for (const bool hints : {false, true}) {
        const std::string modifiers = cached + ".shared.global" + (hints ? ".L2::cache_hint" : "") + prefetch,
                          policy = hints ? ", %policy" : "";
        EXPECT_EQ(afterCopy(modifiers, policy), all) << modifiers;
        EXPECT_EQ(afterCopy(modifiers, ", 8" + policy), half) << modifiers;
        EXPECT_EQ(afterCopy(modifiers, ", %yes" + policy), none) << modifiers;
        EXPECT_EQ(afterCopy(modifiers, ", %no" + policy), all) << modifiers;
        EXPECT_EQ(afterCopy(modifiers, ", !%no" + policy), none) << modifiers;
      }
  EXPECT_THROW(afterCopy("cg.shared.global.L2::cache_hint", ""), Error);
  EXPECT_THROW(afterCopy("cg.shared.global", ", 8, %policy"), Error);
}

} // namespace kiln::simulator::test
