// Bulk copies of plain bytes: in, out, within shared memory; reductions; groups; single elements.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace kiln::simulator::test {

static const char *const registers =
    ".shared .align 8 .b64 bar[2];\n.shared .align 128 .b32 data[64];\n.reg .b64 %s<6>;\n"
    ".reg .b32 %r<12>;\n.reg .b16 %h;\n.reg .pred %q<6>;";
static const std::string makeBarrier = "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async.shared::cta;\n"
                                       "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;\n";
static const std::string waitBarrier = "W:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra W;\n";
static const std::vector<Delivery> deliveries = {Delivery::late, Delivery::early, Delivery::random};

/// One thread's run on 16 words in and 16 words out.
struct Outcome {
  std::vector<uint32_t> out;
  std::vector<std::string> found;
};
static Outcome runText(const std::string &text, Delivery delivery,
                       const std::vector<uint32_t> &out = std::vector<uint32_t>(16)) {
  Machine machine(text);
  std::vector<uint32_t> words(16);
  std::iota(words.begin(), words.end(), 100);
  const uint32_t *in = machine.buffer(words), *result = machine.buffer(out);
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(in), address(result)}, 0, {.delivery = delivery});
  return {{result, result + 16}, machine.found()};
}
static Outcome run(const std::string &body, Delivery delivery,
                   const std::vector<uint32_t> &out = std::vector<uint32_t>(16)) {
  return runText(hopperKernel(2, registers, body), delivery, out);
}
static std::vector<uint32_t> counting(uint32_t first) {
  std::vector<uint32_t> words(16);
  std::iota(words.begin(), words.end(), first);
  return words;
}

static const std::string out = "cp.async.bulk.global.shared::cta.bulk_group [%p1], [data], 64;\n"
                               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";

// After a wait at an mbarrier, the bytes have arrived; they are then copied out, with every delivery.
TEST(BulkCopyTest, MovesBytes) {
  for (const char *spelling :
       {"shared::cluster.global.mbarrier::complete_tx::bytes", "shared::cta.global.mbarrier::complete_tx::bytes"})
    for (const Delivery delivery : deliveries) {
      const Outcome got =
          run(makeBarrier + fmt::format("cp.async.bulk.{} [data], [%p0], 64, [bar];\n", spelling) + waitBarrier + out,
              delivery);
      EXPECT_EQ(got.found, std::vector<std::string>{}) << spelling;
      EXPECT_EQ(got.out, counting(100)) << spelling;
    }
}

// Cache hints change nothing. A multicast goes to the cluster's only block.
TEST(BulkCopyTest, TakesHintsAndMasks) {
  const Outcome got =
      run("createpolicy.fractional.L2::evict_last.b64 %s0, 1.0;\nmov.u16 %h, 1;\n"
          "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%p0], 64, %s0;\n"
          "cp.async.bulk.prefetch.L2.global [%p0], 64;\n" +
              makeBarrier +
              "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
              "[data], [%p0], 64, [bar], %h, %s0;\n" +
              waitBarrier +
              "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%p1], [data], 64, %s0;\n"
              "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
          Delivery::late);
  EXPECT_EQ(got.found, std::vector<std::string>{});
  EXPECT_EQ(got.out, counting(100));
}

/// Copies `data`'s third quarter from its second within shared memory: to the addresses in %r8, and an mbarrier in %r9.
static Outcome runWithinShared(const std::string &addresses, const std::string &directives = "") {
  const std::string text = hopperKernel(
      2, registers,
      makeBarrier + "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%p0], 64, [bar];\n" +
          waitBarrier +
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;\nmov.u32 %r8, data;\nmov.u32 %r9, bar;\n" +
          addresses +
          "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8+64], [data+32], 32, [%r9];\n"
          "V:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 1;\n@!%q0 bra V;\n"
          "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [data+64];\nst.global.v4.u32 [%p1], {%r0, %r1, %r2, %r3};\n");
  return runText(text.substr(0, text.find('{')) + directives + text.substr(text.find('{')), Delivery::late);
}
static void expectThirdQuarter(const Outcome &got) {
  EXPECT_EQ(got.found, std::vector<std::string>{});
  EXPECT_EQ(std::vector<uint32_t>(got.out.begin(), got.out.begin() + 4), (std::vector<uint32_t>{108, 109, 110, 111}));
}

// From shared memory to the shared memory of a block of the cluster, which is the block itself.
TEST(BulkCopyTest, MovesWithinShared) { expectThirdQuarter(runWithinShared("")); }

// That also holds if addresses name the block by its rank, and in a cluster that the kernel declares.
TEST(BulkCopyTest, MovesWithinSharedByRank) {
  expectThirdQuarter(runWithinShared("mapa.shared::cluster.u32 %r8, %r8, 0;\nmapa.shared::cluster.u32 %r9, %r9, 0;\n"));
}
TEST(BulkCopyTest, MovesWithinSharedOfACluster) {
  expectThirdQuarter(runWithinShared("mapa.shared::cluster.u32 %r8, %r8, 0;\nmapa.shared::cluster.u32 %r9, %r9, 0;\n",
                                     ".reqnctapercluster 1, 1, 1\n"));
}

/// `data` has values, and thread 0 copies its first 32 bytes to the last ones, which completes at the second mbarrier;
/// then `body`.
static std::vector<std::string> besideACopy(const std::string &body, int threads, Delivery delivery) {
  Machine machine(hopperKernel(1, registers,
                               "setp.lt.u32 %q1, %t, 64;\nmul.lo.u32 %r1, %t, 4;\nmov.u32 %r2, data;\n"
                               "add.u32 %r1, %r1, %r2;\n@%q1 st.shared.u32 [%r1], %t;\n"
                               "setp.eq.u32 %q2, %t, 0;\n@%q2 mbarrier.init.shared::cta.b64 [bar+8], 1;\n"
                               "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
                               "@%q2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar+8], 32;\n"
                               "@%q2 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                               "[data+224], [data], 32, [bar+8];\n" +
                                   body));
  machine.run("k", {1, 1, 1}, {threads, 1, 1}, {0}, 0, {.delivery = delivery});
  return machine.found();
}
static const std::string waitSecond = "W:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar+8], 0;\n@!%q0 bra W;\n";

// A barrier does not order an engine's reads: only the copy's mbarrier does, whether the copy has completed or not, and
// for large blocks, too.
TEST(BulkCopyTest, SourcesAreReadUntilTheMbarrierIsWaitedFor) {
  for (const int threads : {64, 512, 544, 1024})
    for (const Delivery delivery : deliveries) {
      const std::string write = "setp.eq.u32 %q3, %t, 32;\n@%q3 st.shared.u32 [data+4], 9;\n";
      const std::vector<std::string> got =
          besideACopy("ld.shared.u32 %r3, [data+4];\nbar.sync 0;\n" + write, threads, delivery);
      EXPECT_EQ(std::count_if(got.begin(), got.end(),
                              [](const std::string &text) {
                                return text.find("writes byte 4 of .shared, which an asynchronous ") !=
                                       std::string::npos;
                              }),
                1)
          << threads << " threads, delivery " << static_cast<int>(delivery);
      EXPECT_EQ(besideACopy("ld.shared.u32 %r3, [data+4];\n" + waitSecond + "bar.sync 0;\n" + write, threads, delivery),
                std::vector<std::string>{})
          << threads;
    }
}

// An engine's read does not make a thread's own access conflict with another thread's.
TEST(BulkCopyTest, WhoReadsBesideACopyMayWriteAfterIt) {
  for (const Delivery delivery : deliveries)
    EXPECT_EQ(
        besideACopy("@!%q2 bra E;\nld.shared.u32 %r3, [data+4];\n" + waitSecond + "st.shared.u32 [data+4], 9;\nE:\n",
                    64, delivery),
        std::vector<std::string>{});
}

/// Fills `data` with words and shows them to the engines.
static std::string fill(uint32_t (*word)(uint32_t)) {
  std::string text;
  for (uint32_t i = 0; i < 16; ++i)
    text += fmt::format("st.shared.u32 [data+{}], {};\n", 4 * i, word(i));
  return text + "fence.proxy.async.shared::cta;\n";
}

// A thread that waits for the reads alone may overwrite the source; the earlier data are stored.
TEST(BulkCopyTest, ReadsBeforeItWrites) {
  for (const Delivery delivery : deliveries) {
    const Outcome got =
        run(fill([](uint32_t i) { return 7 + i; }) +
                "cp.async.bulk.global.shared::cta.bulk_group [%p1], [data], 64;\ncp.async.bulk.commit_group;\n"
                "cp.async.bulk.wait_group.read 0;\nst.shared.u32 [data], 1;\ncp.async.bulk.wait_group 0;\n",
            delivery);
    EXPECT_EQ(got.found, std::vector<std::string>{});
    EXPECT_EQ(got.out, counting(7));
  }
}

// A wait for all but one group waits for the older one only.
TEST(BulkCopyTest, WaitsByGroups) {
  const Outcome got =
      run(fill([](uint32_t i) { return 7 + i; }) +
              "cp.async.bulk.global.shared::cta.bulk_group [%p1], [data], 16;\ncp.async.bulk.commit_group;\n"
              "cp.async.bulk.global.shared::cta.bulk_group [%p1+32], [data+16], 16;\n"
              "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 1;\nld.global.u32 %r0, [%p1];\n"
              "st.shared.u32 [data], %r0;\ncp.async.bulk.wait_group 0;\n"
              "ld.shared.u32 %r0, [data];\nst.global.u32 [%p1+16], %r0;\n",
          Delivery::late);
  EXPECT_EQ(got.found, std::vector<std::string>{});
  EXPECT_EQ(got.out[4], 7u);
  EXPECT_EQ(got.out[8], 11u);
}

// --- Reductions ----------------------------------------------------------------------------------------------------

// Each operation, on words in global memory.
TEST(BulkCopyTest, ReducesIntoGlobal) {
  struct Case {
    const char *operation;
    uint32_t (*word)(uint32_t old, uint32_t with);
  };
  const Case cases[] = {
      {"add.u32", [](uint32_t a, uint32_t b) { return a + b; }},
      {"add.s32", [](uint32_t a, uint32_t b) { return a + b; }},
      {"min.u32", [](uint32_t a, uint32_t b) { return std::min(a, b); }},
      {"max.s32",
       [](uint32_t a, uint32_t b) {
         return static_cast<uint32_t>(std::max(static_cast<int32_t>(a), static_cast<int32_t>(b)));
       }},
      {"inc.u32", [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }},
      {"dec.u32", [](uint32_t a, uint32_t b) { return a == 0 || a > b ? b : a - 1; }},
      {"and.b32", [](uint32_t a, uint32_t b) { return a & b; }},
      {"or.b32", [](uint32_t a, uint32_t b) { return a | b; }},
      {"xor.b32", [](uint32_t a, uint32_t b) { return a ^ b; }},
      {"add.f32",
       [](uint32_t a, uint32_t b) {
         return std::bit_cast<uint32_t>(std::bit_cast<float>(a) + std::bit_cast<float>(b));
       }},
  };
  const auto with = [](uint32_t i) { return 0x3f000000 ^ (i << 23); };
  for (const Case &each : cases) {
    std::vector<uint32_t> old(16), want(16);
    for (uint32_t i = 0; i < 16; ++i) {
      old[i] = 0x3f800000 + (i << 21);
      want[i] = each.word(old[i], with(i));
    }
    const Outcome got =
        run(fill(with) + fmt::format("cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [%p1], [data], 64;\n"
                                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
                                     each.operation),
            Delivery::random, old);
    EXPECT_EQ(got.found, std::vector<std::string>{}) << each.operation;
    EXPECT_EQ(got.out, want) << each.operation;
  }
}

// Halves are added two bytes at a time, each rounded: 1 + 2 = 3, in f16 and in bf16; 64-bit words carry.
TEST(BulkCopyTest, ReducesOtherWidths) {
  struct Case {
    const char *operation;
    uint32_t old, with, want;
  };
  for (const Case &each :
       {Case{"add.noftz.f16", 0x40003c00, 0x3c004000, 0x42004200}, Case{"max.f16", 0x40003c00, 0x3c004000, 0x40004000},
        Case{"add.noftz.bf16", 0x40003f80, 0x3f804000, 0x40404040}}) {
    std::string text;
    for (int i = 0; i < 16; ++i)
      text += fmt::format("st.shared.u32 [data+{}], {};\n", 4 * i, each.with);
    const Outcome got = run(text + "fence.proxy.async.shared::cta;\n" +
                                fmt::format("cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [%p1], [data], 64;\n"
                                            "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
                                            each.operation),
                            Delivery::late, std::vector<uint32_t>(16, each.old));
    EXPECT_EQ(got.found, std::vector<std::string>{}) << each.operation;
    EXPECT_EQ(got.out, std::vector<uint32_t>(16, each.want)) << each.operation;
  }
  const Outcome wide = run(fill([](uint32_t i) { return i % 2 ? 0 : ~0u; }) +
                               "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%p1], [data], 64;\n"
                               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
                           Delivery::late, std::vector<uint32_t>(16, 1));
  for (size_t i = 0; i < 16; ++i) // 2^32 + 1 + 2^32 − 1 = 2 · 2^32
    EXPECT_EQ(wide.out[i], i % 2 ? 2u : 0u) << i;
}

// Stores and reductions of single elements complete later, and an mbarrier counts their bytes.
TEST(BulkCopyTest, StoresElements) {
  for (const Delivery delivery : deliveries) {
    const Outcome got =
        run("st.shared.u32 [data+16], 40;\nmbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async.shared::cta;\n"
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 20;\nmov.u32 %r8, data;\nmov.u32 %r9, bar;\nmov.u32 "
            "%r0, 2;\n"
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%r8], {%r0, %r0, 3, 4}, [%r9];\n"
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r8+16], %r0, [%r9];\n" +
                waitBarrier +
                "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [data];\nst.global.v4.u32 [%p1], {%r0, %r1, %r2, %r3};\n"
                "ld.shared.u32 %r0, [data+16];\nst.global.u32 [%p1+16], %r0;\n",
            delivery);
    EXPECT_EQ(got.found, std::vector<std::string>{});
    EXPECT_EQ(std::vector<uint32_t>(got.out.begin(), got.out.begin() + 5), (std::vector<uint32_t>{2, 2, 3, 4, 42}));
  }
}

/// The results of 64 threads that add to 100, each to its own word, and then read each other's words, before or after
/// the wait.
static Outcome addToOthers(bool waitsFirst, Delivery delivery) {
  const std::string read = "xor.b32 %r2, %r1, 252;\nadd.u32 %r2, %r8, %r2;\nld.shared.u32 %r3, [%r2];\n";
  Machine machine(hopperKernel(
      2, registers,
      "mov.u32 %r0, %tid.x;\nshl.b32 %r1, %r0, 2;\nmov.u32 %r8, data;\nadd.u32 %r4, %r8, %r1;\nmov.u32 %r9, bar;\n"
      "st.shared.u32 [%r4], 100;\nsetp.ne.u32 %q1, %r0, 0;\n@%q1 bra L0;\n"
      "mbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;\nL0:\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
      "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], %r0, [%r9];\n" +
          (waitsFirst ? waitBarrier + read : read + waitBarrier) +
          "cvt.u64.u32 %s0, %r1;\nadd.u64 %s0, %p1, %s0;\nst.global.u32 [%s0], %r3;\n"));
  uint32_t *const result = machine.buffer(std::vector<uint32_t>(64));
  machine.run("k", {1, 1, 1}, {64, 1, 1}, {address(result), address(result)}, 0, {.delivery = delivery});
  return {{result, result + 64}, machine.found()};
}

// A thread that has waited at the mbarrier, and no other, is ordered after the reductions of all threads it counts.
TEST(BulkCopyTest, OrdersReductionsByTheirBarrier) {
  for (const Delivery delivery : deliveries) {
    const Outcome got = addToOthers(true, delivery);
    EXPECT_EQ(got.found, std::vector<std::string>{});
    for (uint32_t i = 0; i < 64; ++i)
      EXPECT_EQ(got.out[i], 100 + 63 - i) << i;
    EXPECT_FALSE(addToOthers(false, delivery).found.empty());
  }
}

// --- What is wrong -------------------------------------------------------------------------------------------------

/// The kinds of findings, for all times of completion.
static std::vector<std::string> kindsOf(const std::string &body, Delivery delivery) {
  std::vector<std::string> kinds;
  for (const std::string &text : run(body, delivery).found)
    kinds.push_back(text.substr(0, text.find(':')));
  return kinds;
}

TEST(BulkCopyTest, FindsWhatNobodyWaitedFor) {
  const std::string copy =
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%p0], 64, [bar];\n";
  const std::string read = "ld.shared.u32 %r0, [data];\nst.global.u32 [%p1], %r0;\n";
  for (const Delivery delivery : deliveries) {
    // A read before the wait: of bytes in flight, or of bytes that have arrived without the thread's wait.
    EXPECT_FALSE(kindsOf(makeBarrier + copy + read + waitBarrier, delivery).empty());
    // The source is overwritten before any wait.
    EXPECT_EQ(
        kindsOf(fill([](uint32_t i) { return i; }) +
                    "cp.async.bulk.global.shared::cta.bulk_group [%p1], [data], 64;\ncp.async.bulk.commit_group;\n"
                    "st.shared.u32 [data], 1;\ncp.async.bulk.wait_group 0;\n",
                delivery),
        std::vector<std::string>{"in-flight"});
    // The block ends while its memory is being read.
    EXPECT_EQ(
        kindsOf(fill([](uint32_t i) { return i; }) +
                    "cp.async.bulk.global.shared::cta.bulk_group [%p1], [data], 64;\ncp.async.bulk.commit_group;\n",
                delivery),
        std::vector<std::string>{"in-flight"});
  }
}

TEST(BulkCopyTest, FindsMissingProxyFence) {
  std::string text;
  for (int i = 0; i < 16; ++i)
    text += fmt::format("st.shared.u32 [data+{}], {};\n", 4 * i, i);
  EXPECT_EQ(kindsOf(text + out, Delivery::late), std::vector<std::string>{"proxy"});
  EXPECT_EQ(kindsOf(text + "fence.proxy.async;\n" + out, Delivery::late), std::vector<std::string>{});
}

TEST(BulkCopyTest, WantsMultiplesOf16) {
  const auto copy = [](const std::string &operands) {
    return run("mbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async;\nmov.u32 %r1, 8;\n"
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes " +
                   operands + ", [bar];\n",
               Delivery::early)
        .found;
  };
  EXPECT_EQ(copy("[data], [%p0], %r1").at(0),
            "alignment: expected a number of bytes that is a multiple of 16, but got 8");
  EXPECT_EQ(copy("[data+8], [%p0], 16").at(0), "alignment: writes 16 bytes at 0x88, which is no multiple of 16");
  EXPECT_TRUE(copy("[data], [%p0+64], 16").at(0).starts_with("bounds: reads 16 bytes"));
}

// --- cp.async: the data that a thread reads before and after its wait, for every time of completion ------------------

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
