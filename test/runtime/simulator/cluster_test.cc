// Clusters of one block, and registers that warpgroups release and request.

#include "test/expect_error.h"
#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>

namespace kiln::simulator::test {

static const char *const registers = ".shared .align 16 .b32 data[32];\n.shared .b64 bar;\n.reg .b16 %h;\n.reg .b64 "
                                     "%s<4>;\n.reg .b32 %r<12>;\n.reg .pred %q<3>;";

static std::vector<uint32_t> run(const std::string &body, int threads, std::vector<std::string> *found,
                                 Schedule schedule = {}) {
  Machine machine(hopperKernel(1, registers, body));
  const uint32_t *out = machine.buffer(std::vector<uint32_t>(static_cast<size_t>(2 * threads) + 8));
  machine.run("k", {2, 1, 1}, {threads, 1, 1}, {address(out)}, 0, schedule);
  *found = machine.found();
  return {out, out + 2 * threads + 8};
}

// The block is its own cluster: rank 0 of 1, the cluster's number is the block's.
TEST(ClusterTest, HasOneBlock) {
  std::vector<std::string> found;
  const std::vector<uint32_t> got =
      run("mov.u32 %r0, %cluster_ctarank;\nmov.u32 %r1, %cluster_nctarank;\nmov.u32 %r2, %clusterid.x;\n"
          "mov.u32 %r3, %nclusterid.x;\nsetp.ne.u32 %q0, %n0, 1;\n@%q0 bra END;\n"
          "st.global.v4.u32 [%p0], {%r0, %r1, %r2, %r3};\nEND:\n",
          1, &found);
  EXPECT_EQ(found, std::vector<std::string>{});
  EXPECT_EQ(std::vector<uint32_t>(got.begin(), got.begin() + 4), (std::vector<uint32_t>{0, 1, 1, 2}));
}

// mapa gives the block's own memory for rank 0, in both widths; getctarank gives the rank of an address.
TEST(ClusterTest, MapsItsOwnMemory) {
  std::vector<std::string> found;
  const std::vector<uint32_t> got =
      run("mov.u32 %r0, data;\nmapa.shared::cluster.u32 %r1, %r0, 0;\nst.shared::cluster.u32 [%r1+4], 42;\n"
          "cvt.u64.u32 %s1, %r0;\ncvta.shared.u64 %s1, %s1;\nmapa.u64 %s2, %s1, 0;\n"
          "ld.u32 %r2, [%s2+4];\ngetctarank.shared::cluster.u32 %r3, %r1;\ngetctarank.u64 %r4, %s2;\n"
          "atom.shared::cluster.add.u32 %r5, [%r1+4], 1;\nst.global.v4.u32 [%p0], {%r2, %r3, %r4, %r5};\n",
          1, &found);
  EXPECT_EQ(std::vector<uint32_t>(got.begin(), got.begin() + 4), (std::vector<uint32_t>{42, 0, 0, 42}));
  run("mov.u32 %r0, data;\nmapa.shared::cluster.u32 %r1, %r0, 1;\n", 1, &found);
  EXPECT_EQ(found, std::vector<std::string>{"bounds: names block 1 of a cluster that has one block"});
}

// An arrival at the cluster's barrier does not block. A thread that waits sees the writes before the other arrivals.
TEST(ClusterTest, HasABarrier) {
  const std::string body = "mov.u32 %r0, data;\nand.b32 %r1, %n2, 31;\nmad.lo.u32 %r2, %r1, 4, %r0;\n"
                           "setp.ge.u32 %q0, %n2, 32;\n@!%q0 st.shared.u32 [%r2], %r1;\n"
                           "barrier.cluster.arrive.release.aligned;\n{}mov.u32 %r4, 5;\n"
                           "@%q0 ld.shared.u32 %r4, [%r2];\nadd.u64 %s0, %p0, %o;\nst.global.u32 [%p0], 1;\n";
  for (const Order order : {Order::forward, Order::reverse}) {
    std::vector<std::string> found;
    run(fmt::format(fmt::runtime(body), "barrier.cluster.wait.acquire.aligned;\n"), 64, &found, {.order = order});
    EXPECT_EQ(found, std::vector<std::string>{});
  }
  std::vector<std::string> found;
  run(fmt::format(fmt::runtime(body), ""), 64, &found);
  EXPECT_FALSE(found.empty());
  run("barrier.cluster.wait.aligned;\n", 32, &found);
  EXPECT_EQ(found, std::vector<std::string>{"barrier: waits at the cluster's barrier without arriving"});
}

TEST(ClusterTest, RefusesMoreBlocks) {
  const std::string text = hopperKernel(0, "", "");
  std::string two = text;
  two.insert(two.find('{'), ".reqnctapercluster 2, 1, 1\n");
  Memory memory;
  const auto parsed = std::make_shared<ptx::Module>(ptx::parse(two));
  expectError([&] { buildProgram(parsed, "k", memory); },
              {"clusters of more than one block are not supported", "but got 2x1x1"});
}

// A copy to several blocks of a cluster may list only existing ones.
TEST(ClusterTest, HasNoOtherBlockToCopyTo) {
  const auto copyTo = [](int mask) {
    std::vector<std::string> found;
    run(fmt::format(
            "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async;\n"
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\nmov.b16 %h, {};\n"
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [data], [%p0], "
            "16, [bar], %h;\n"
            "W:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra W;\n",
            mask),
        1, &found);
    return found;
  };
  EXPECT_EQ(copyTo(1), std::vector<std::string>{});
  EXPECT_EQ(copyTo(3), std::vector<std::string>{
                           "bounds: expected a mask of the cluster's blocks, of which there is one, but got 0x3"});
}

// Instructions for overlapping kernels, and waits for earlier kernels, have no effect.
TEST(ClusterTest, TakesGridControl) {
  std::vector<std::string> found;
  run("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\n", 32, &found);
  EXPECT_EQ(found, std::vector<std::string>{});
}

// --- Registers -----------------------------------------------------------------------------------------------------

/// A kernel of 384 threads with 168 registers each: a warpgroup releases registers, two request more.
static std::vector<std::string> handOver(int given, int taken, Order order = Order::forward) {
  std::string text = hopperKernel(0, ".reg .pred %q0;",
                                  fmt::format("setp.lt.u32 %q0, %t, 128;\n@%q0 bra GIVE;\n"
                                              "setmaxnreg.inc.sync.aligned.u32 {};\nbra END;\n"
                                              "GIVE:\nsetmaxnreg.dec.sync.aligned.u32 {};\nEND:\n",
                                              taken, given));
  text.insert(text.find('{'), ".reqntid 384, 1, 1\n.maxnreg 168\n");
  Machine machine(text);
  machine.run("k", {1, 1, 1}, {384, 1, 1}, {}, 0, {.order = order});
  return machine.found();
}

TEST(RegistersTest, AreHandedOver) {
  // 168 − 40 = 128 registers are free, for two times 64.
  for (const Order order : {Order::forward, Order::reverse, Order::random})
    EXPECT_EQ(handOver(40, 232, order), std::vector<std::string>{});
  EXPECT_EQ(handOver(40, 160).at(0), "registers: asks for 160 registers instead of 168, which is no increase");
}

// A request for more registers than become free waits for ever.
TEST(RegistersTest, RunOut) {
  const std::vector<std::string> found = handOver(40, 240);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("deadlock: lanes 0xffffffff of warp ")) << found[0];
  EXPECT_NE(found[0].find("wait for 72 registers a lane, but only "), std::string::npos) << found[0];
}

} // namespace kiln::simulator::test
