// mbarrier: counts, phases, waits, and invalid operations.

#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>

namespace kiln::simulator::test {

static const char *const registers =
    ".shared .align 8 .b64 bar[4];\n.shared .align 16 .b32 data[64];\n.reg .b64 %s<6>;\n"
    ".reg .b32 %r<12>;\n.reg .pred %q<6>;";

/// Runs one thread; returns the values that it stores in %r0 … %r7.
static std::vector<uint32_t> oneThread(const std::string &body, std::vector<std::string> *found = nullptr) {
  std::string zeros, stores;
  for (int i = 0; i < 8; ++i) {
    zeros += fmt::format("mov.u32 %r{}, 0;\n", i);
    stores += fmt::format("st.global.u32 [%p0+{}], %r{};\n", 4 * i, i);
  }
  Machine machine(hopperKernel(1, registers, zeros + body + stores));
  const uint32_t *out = machine.buffer(std::vector<uint32_t>(8));
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(out)});
  if (found)
    *found = machine.found();
  else
    EXPECT_EQ(machine.found(), std::vector<std::string>{}) << body;
  return {out, out + 8};
}

/// The findings for one thread that runs this body.
static std::vector<std::string> faultsOf(const std::string &body) {
  std::vector<std::string> found;
  oneThread(body, &found);
  return found;
}

static std::string testInto(int result, const std::string &wait) {
  return fmt::format("{}\nselp.u32 %r{}, 1, 0, %q0;\n", wait, result);
}

// A phase ends with the last of its arrivals, as its state and its parity show. The next phase expects equally many.
TEST(MbarrierTest, CountsArrivals) {
  const std::vector<uint32_t> got =
      oneThread("mbarrier.init.shared::cta.b64 [bar], 2;\nmbarrier.arrive.shared::cta.b64 %s0, [bar];\n" +
                testInto(0, "mbarrier.test_wait.shared::cta.b64 %q0, [bar], %s0;") +
                testInto(1, "mbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 0;") +
                testInto(2, "mbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 1;") + // the phase before the first
                "mbarrier.arrive.release.cta.shared::cta.b64 %s1, [bar];\n" +
                testInto(3, "mbarrier.test_wait.acquire.cta.shared::cta.b64 %q0, [bar], %s0;") +
                testInto(4, "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %q0, [bar], 0;") +
                "mbarrier.arrive.shared::cta.b64 _, [bar], 2;\n" +
                testInto(5, "mbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 1, 100;") +
                testInto(6, "mbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;"));
  EXPECT_EQ(got, (std::vector<uint32_t>{0, 0, 1, 1, 1, 1, 0, 0}));
}

// A generic address, the cluster's name for shared memory, and an offset refer to the same object.
TEST(MbarrierTest, TakesEveryAddress) {
  const std::vector<uint32_t> got = oneThread(
      "cvta.shared.u64 %s3, bar;\nmbarrier.init.b64 [%s3+8], 2;\nmov.u32 %r8, bar;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8+8];\n"
      "mapa.shared::cluster.u32 %r9, %r8, 0;\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9+8];\n" +
      testInto(0, "mbarrier.test_wait.parity.b64 %q0, [%s3+8], 0;"));
  EXPECT_EQ(got[0], 1u);
}

// A dropped arrival is subtracted from all later phases; states have the number of arrivals that were pending before.
TEST(MbarrierTest, DropsArrivals) {
  const std::vector<uint32_t> got =
      oneThread("mbarrier.init.shared::cta.b64 [bar], 5;\nmbarrier.arrive.noComplete.shared::cta.b64 %s0, [bar], 2;\n"
                "mbarrier.pending_count.b64 %r0, %s0;\n"
                "mbarrier.arrive_drop.noComplete.shared::cta.b64 %s1, [bar], 2;\nmbarrier.pending_count.b64 %r1, %s1;\n"
                "mbarrier.arrive_drop.shared::cta.b64 %s1, [bar];\n" + // 5 − 2 − 2 − 1: the end of the phase
                testInto(2, "mbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 0;") +
                "mbarrier.arrive.noComplete.shared::cta.b64 %s2, [bar], 1;\nmbarrier.pending_count.b64 %r3, %s2;\n");
  EXPECT_EQ(got, (std::vector<uint32_t>{5, 3, 1, 2, 0, 0, 0, 0}));
}

// With expected bytes, the arrivals alone do not end a phase; bytes that arrive first are counted as negative.
TEST(MbarrierTest, CountsBytes) {
  const std::vector<uint32_t> got = oneThread(
      "mbarrier.init.shared::cta.b64 [bar], 2;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 96;\n"
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 32;\nmbarrier.arrive.shared::cta.b64 _, [bar];\n" +
      testInto(0, "mbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 0;") +
      "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 64;\n" +
      testInto(1, "mbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 0;") +
      "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 64;\n" +
      testInto(2, "mbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 0;") +
      "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;\nmbarrier.arrive.shared::cta.b64 _, [bar];\n"
      "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [bar], 16;\n" +
      testInto(3, "mbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 1;"));
  EXPECT_EQ(got, (std::vector<uint32_t>{0, 0, 1, 1, 0, 0, 0, 0}));
}

/// Warp 0 fills a slot in each of 8 iterations and waits until warp 1 has summed it. `arrive` and `wait` are the texts
/// between `mbarrier.` and the operands.
static std::string pingPong(const std::string &arrive, const std::string &wait) {
  const std::string full = fmt::format("mbarrier.{}.shared::cta.b64 _, [bar];\n", arrive),
                    empty = fmt::format("mbarrier.{}.shared::cta.b64 _, [bar+8];\n", arrive);
  return hopperKernel(
      1, registers,
      "mov.u32 %r0, 0;\nmov.u32 %r1, 0;\nsetp.ne.u32 %q0, %t, 0;\n@%q0 bra MADE;\n"
      "mbarrier.init.shared::cta.b64 [bar], 32;\nmbarrier.init.shared::cta.b64 [bar+8], 32;\nMADE:\nbar.sync 0;\n"
      "mov.u32 %r4, data;\nshl.b32 %r5, %t, 2;\nand.b32 %r5, %r5, 127;\nadd.u32 %r4, %r4, %r5;\n"
      "setp.ge.u32 %q1, %t, 32;\n@%q1 bra CONSUMER;\n"
      "PRODUCER:\nand.b32 %r2, %r0, 1;\nxor.b32 %r2, %r2, 1;\n"
      "P0:\nmbarrier." +
          wait +
          ".shared::cta.b64 %q2, [bar+8], %r2;\n@!%q2 bra P0;\n"
          "mad.lo.u32 %r3, %r0, 100, %t;\nst.shared.u32 [%r4], %r3;\n" +
          full +
          "add.u32 %r0, %r0, 1;\nsetp.lt.u32 %q3, %r0, 8;\n@%q3 bra PRODUCER;\nbra END;\n"
          "CONSUMER:\nand.b32 %r2, %r0, 1;\n"
          "C0:\nmbarrier." +
          wait +
          ".shared::cta.b64 %q2, [bar], %r2;\n@!%q2 bra C0;\n"
          "ld.shared.u32 %r3, [%r4];\nadd.u32 %r1, %r1, %r3;\n" +
          empty +
          "add.u32 %r0, %r0, 1;\nsetp.lt.u32 %q3, %r0, 8;\n@%q3 bra CONSUMER;\n"
          "add.u64 %s0, %p0, %o;\nst.global.u32 [%s0], %r1;\nEND:\n");
}

static std::vector<std::string> runPingPong(const std::string &text, const Schedule &schedule) {
  Machine machine(text);
  const uint64_t *out = machine.buffer(std::vector<uint64_t>(64));
  machine.run("k", {1, 1, 1}, {64, 1, 1}, {address(out)}, 0, schedule);
  for (uint64_t lane = 0; lane < 32; ++lane) // 100 · (0 + … + 7) + 8 · lane
    EXPECT_EQ(out[32 + lane], 2800 + 8 * lane);
  return machine.found();
}

// Two warps that pass a slot back and forth wait for each other, whichever is first, with try_wait and test_wait.
TEST(MbarrierTest, OrdersWarps) {
  for (const char *wait : {"try_wait.parity", "test_wait.parity", "try_wait.parity.acquire.cta"}) {
    const std::string text = pingPong("arrive", wait);
    for (const Order order : {Order::forward, Order::reverse, Order::random})
      EXPECT_EQ(runPingPong(text, {.order = order}), std::vector<std::string>{}) << wait;
  }
}

// A relaxed arrival, or a relaxed wait, orders no other accesses: a race.
TEST(MbarrierTest, RelaxedOrdersNothing) {
  for (const auto &[arrive, wait] :
       {std::pair{"arrive.relaxed.cta", "try_wait.parity"}, std::pair{"arrive", "try_wait.parity.relaxed.cta"}}) {
    const std::vector<std::string> found = runPingPong(pingPong(arrive, wait), {});
    ASSERT_FALSE(found.empty());
    EXPECT_TRUE(found[0].starts_with("race: ")) << found[0];
  }
}

// An arrival after asynchronous copies occurs when these have completed; with .noinc it is one of the expected ones.
TEST(MbarrierTest, FollowsCopies) {
  for (const auto &[modifier, count] : {std::pair{"", 1}, std::pair{".noinc", 2}})
    for (const Delivery delivery : {Delivery::late, Delivery::early, Delivery::random}) {
      Machine machine(hopperKernel(
          2, registers,
          fmt::format(
              "mbarrier.init.shared::cta.b64 [bar], {};\ncp.async.ca.shared.global [data], [%p0], 16;\n"
              "cp.async.mbarrier.arrive{}.shared::cta.b64 [bar];\n"
              "cp.async.ca.shared.global [data+16], [%p0], 16;\nmbarrier.arrive.shared::cta.b64 _, [bar];\n"
              "W:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra W;\n"
              "ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [data];\nst.global.v4.u32 [%p1], {{%r0, %r1, %r2, %r3}};\n"
              "cp.async.wait_all;\nmbarrier.inval.shared::cta.b64 [bar];\n",
              count, modifier)));
      const uint32_t *in = machine.buffer<uint32_t>({5, 6, 7, 8}), *out = machine.buffer<uint32_t>({0, 0, 0, 0});
      machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(in), address(out)}, 0, {.delivery = delivery});
      EXPECT_EQ(machine.found(), std::vector<std::string>{}) << modifier;
      EXPECT_EQ(std::vector<uint32_t>(out, out + 4), (std::vector<uint32_t>{5, 6, 7, 8})) << modifier;
    }
}

// Copies of two stages complete in any order, also before the arrival at the first barrier. A thread that has waited
// for a barrier may read the data that it covers, whichever engine wrote them. The second barrier covers both
// stages.
TEST(MbarrierTest, FollowsCopiesOfSeveralStages) {
  const auto stage = [](int number) {
    return fmt::format("cp.async.ca.shared.global [%r1+{0}], [%s1], 4;\n"
                       "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [two+{1}];\n",
                       256 * number, 8 * number);
  };
  const auto wait = [](int number) {
    return fmt::format("W{0}:\nmbarrier.test_wait.parity.shared::cta.b64 %q0, [two+{1}], 0;\n@!%q0 bra W{0};\n", number,
                       8 * number);
  };
  const auto read = [](int number) {
    return fmt::format("ld.shared.u32 %r3, [%r2+{}];\nadd.u32 %r4, %r4, %r3;\n", 256 * number);
  };
  const std::string begin =
      ".shared .align 8 .b64 two[2];\n.shared .align 16 .b32 stages[128];\n"
      "mov.u32 %r0, %tid.x;\nsetp.eq.u32 %q1, %r0, 0;\n"
      "@%q1 mbarrier.init.shared::cta.b64 [two], 64;\n@%q1 mbarrier.init.shared::cta.b64 [two+8], 64;\nbar.sync 0;\n"
      "mul.wide.u32 %s0, %r0, 4;\nadd.u64 %s1, %p0, %s0;\nadd.u64 %s2, %p1, %s0;\n"
      "mov.u32 %r5, stages;\nmad.lo.u32 %r1, %r0, 4, %r5;\n"
      "xor.b32 %r6, %r0, 32;\nmad.lo.u32 %r2, %r6, 4, %r5;\nmov.u32 %r4, 0;\n" + // the same lane of the other warp
      stage(0) +
      stage(1);
  const std::string oneByOne = wait(0) + read(0) + wait(1) + read(1), atOnce = wait(1) + read(0) + read(1);
  for (const Delivery delivery : {Delivery::late, Delivery::early, Delivery::random})
    for (uint64_t seed = 0; seed < 10; ++seed) {
      Machine machine(
          hopperKernel(2, registers, begin + (seed % 2 ? oneByOne : atOnce) + "st.global.u32 [%s2], %r4;\n"));
      std::vector<uint32_t> numbers(64);
      for (uint32_t i = 0; i < 64; ++i)
        numbers[i] = 3 * i + 1;
      const uint32_t *in = machine.buffer<uint32_t>(numbers),
                     *out = machine.buffer<uint32_t>(std::vector<uint32_t>(64));
      machine.run("k", {1, 1, 1}, {64, 1, 1}, {address(in), address(out)}, 0, {.delivery = delivery, .seed = seed});
      EXPECT_EQ(machine.found(), std::vector<std::string>{}) << seed;
      for (size_t i = 0; i < 64; ++i)
        EXPECT_EQ(out[i], 2 * numbers[i ^ 32]) << i;
    }
}

// --- What nobody may do --------------------------------------------------------------------------------------------

static const std::string init = "mbarrier.init.shared::cta.b64 [bar], 2;\n";

TEST(MbarrierTest, WantsAnObject) {
  EXPECT_EQ(faultsOf("mbarrier.arrive.shared::cta.b64 _, [bar];\n"),
            std::vector<std::string>{"mbarrier: arrives at an mbarrier at 0, where none has been made"});
  EXPECT_EQ(faultsOf(init + "mbarrier.inval.shared::cta.b64 [bar];\n" +
                     "mbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 0;\n"),
            std::vector<std::string>{"mbarrier: waits at an mbarrier at 0, which has been invalidated"});
  EXPECT_EQ(faultsOf(init + "mbarrier.init.shared::cta.b64 [bar], 2;\n"),
            std::vector<std::string>{"mbarrier: makes an mbarrier at 0, but there is one at 0 that has not been "
                                     "invalidated (mbarrier at 0)"});
}

// Other instructions may touch its bytes before it is made and after it is invalidated.
TEST(MbarrierTest, BelongsToItsInstructions) {
  EXPECT_EQ(faultsOf(init + "st.shared.u32 [bar+4], 1;\n"),
            std::vector<std::string>{"mbarrier: writes 4 bytes at 4, where the mbarrier at 0 lies"});
  EXPECT_EQ(faultsOf("st.shared.u32 [bar+4], 1;\n" + init + "mbarrier.inval.shared::cta.b64 [bar];\n" +
                     "st.shared.u32 [bar+4], 1;\n"),
            std::vector<std::string>{});
}

TEST(MbarrierTest, HasLimits) {
  EXPECT_EQ(faultsOf("mbarrier.init.shared::cta.b64 [bar], 0;\n"),
            std::vector<std::string>{"mbarrier: expected a count of 1 to 1048575 arrivals, but got 0 (mbarrier at 0)"});
  EXPECT_EQ(
      faultsOf(init + "mbarrier.arrive.shared::cta.b64 _, [bar], 3;\n"),
      std::vector<std::string>{"mbarrier: arrives 3 times, but only 2 of 2 arrivals are pending (mbarrier at 0)"});
  EXPECT_EQ(faultsOf(init + "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1048575;\n"
                            "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 1;\n"),
            std::vector<std::string>{
                "mbarrier: expected a tx-count from -1048575 to 1048575, but got 1048576 (mbarrier at 0)"});
  EXPECT_EQ(
      faultsOf(init + "mbarrier.arrive.noComplete.shared::cta.b64 %s0, [bar], 2;\n"),
      std::vector<std::string>{"mbarrier: ends the phase, which '.noComplete' promises not to do (mbarrier at 0)"});
}

// A state may be tested until the phase after its own has ended.
TEST(MbarrierTest, ForgetsOldPhases) {
  const std::string round = "mbarrier.arrive.shared::cta.b64 _, [bar], 2;\n",
                    begin = init +
                            "mbarrier.arrive.shared::cta.b64 %s0, [bar];\nmbarrier.arrive.shared::cta.b64 _, [bar];\n",
                    test = "mbarrier.test_wait.shared::cta.b64 %q0, [bar], %s0;\n";
  EXPECT_EQ(faultsOf(begin + test), std::vector<std::string>{});
  EXPECT_EQ(
      faultsOf(begin + round + test),
      std::vector<std::string>{"mbarrier: waits for the end of phase 0, but phase 1 has ended, too (mbarrier at 0)"});
}

// A barrier that no fence shows to the asynchronous engines may not count their bytes.
TEST(MbarrierTest, IsShownToEngines) {
  const auto copying = [](const std::string &fence) {
    return faultsOf("mbarrier.init.shared::cta.b64 [bar], 1;\n" + fence +
                    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n"
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%p0], 16, [bar];\n"
                    "W:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra W;\n");
  };
  EXPECT_EQ(copying("fence.proxy.async.shared::cta;\n"), std::vector<std::string>{});
  EXPECT_EQ(copying("fence.mbarrier_init.release.cluster;\n"), std::vector<std::string>{});
  EXPECT_EQ(copying(""),
            std::vector<std::string>{"proxy: an asynchronous engine is to complete bytes at the mbarrier at 0, with no "
                                     "fence.proxy.async or fence.mbarrier_init since it was made"});
}

} // namespace kiln::simulator::test
