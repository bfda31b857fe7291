// Lanes and blocks that wait for others by polling memory. All that can run do run, and no lane passes a point where it
// must reconverge.

#include "test/expect_error.h"
#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>
#include <numeric>

namespace kiln::simulator::test {

/// Every order with every delivery.
static std::vector<Schedule> schedules() {
  std::vector<Schedule> all;
  for (const Order order : {Order::forward, Order::reverse, Order::random})
    for (const Delivery delivery : {Delivery::late, Delivery::early, Delivery::random})
      all.push_back({.order = order, .delivery = delivery, .seed = 5 + all.size()});
  return all;
}

static std::string textOf(const Schedule &schedule) {
  return fmt::format("order {}, delivery {}, threads {}", static_cast<int>(schedule.order),
                     static_cast<int>(schedule.delivery), schedule.threads);
}

/// Runs `run(schedule)` in all schedules, on one thread of the host and on three.
template <class Run> static void inAllSchedules(Run run) {
  for (Schedule schedule : schedules())
    for (const int threads : {1, 3}) {
      schedule.threads = threads;
      SCOPED_TRACE(textOf(schedule));
      run(schedule);
    }
}

/// The code of a lane of block b that waits until a word is b, and the code after it.
static std::string relay(const std::string &others, const std::string &meet, const std::string &then) {
  return kernel(1, ".reg .b32 %r<8>; .reg .pred %q<4>;",
                "mov.b32 %r0, 0;\nsetp.ne.u32 %q0, %n2, 0;\n@%q0 bra join;\nwait:\n"
                "ld.acquire.gpu.global.u32 %r0, [%p0];\nsetp.ne.u32 %q1, %r0, %n0;\n@%q1 bra wait;\n" +
                    others + "join:\n" + meet + then);
}

// The lanes that wait at the join reach the shuffle together with the polling one, for any time of polling.
TEST(SpinningTest, LanesWaitForOneAtAJoin) {
  const std::string text = relay("", "shfl.sync.idx.b32 %r0, %r0, 0, 31, -1;\n",
                                 "@%q0 bra end;\nadd.u32 %r0, %r0, 1;\nst.release.gpu.global.u32 [%p0], %r0;\nend:");
  inAllSchedules([&](const Schedule &schedule) {
    Machine machine(text);
    const uint32_t *turn = machine.buffer<uint32_t>({0});
    machine.run("k", {40, 1, 1}, {32, 1, 1}, {address(turn)}, 0, schedule);
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    EXPECT_EQ(turn[0], 40u);
  });
}

// With a barrier, and another lane that passes the value on.
TEST(SpinningTest, LanesWaitForOneBeforeABarrier) {
  const std::string text =
      relay("", "bar.sync 0;\n",
            "setp.ne.u32 %q2, %n2, 31;\n@%q2 bra end;\nadd.u32 %r0, %n0, 1;\nst.release.gpu.global.u32 [%p0], %r0;\n"
            "end:");
  inAllSchedules([&](const Schedule &schedule) {
    Machine machine(text);
    const uint32_t *turn = machine.buffer<uint32_t>({0});
    machine.run("k", {12, 1, 1}, {64, 1, 1}, {address(turn)}, 0, schedule);
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    EXPECT_EQ(turn[0], 12u);
  });
}

// A long-running warp is no reason to release waiting lanes: it makes progress.
TEST(SpinningTest, AWarpThatCountsIsWaitedFor) {
  inAllSchedules([](Schedule schedule) {
    schedule.maxSteps = 2'000'000;
    Machine machine(kernel(0, ".shared .align 4 .b32 flag; .reg .b32 %r<3>; .reg .pred %q<4>;",
                           "mov.b32 %r0, 0;\nst.shared.b32 [flag], %r0;\nbar.sync 0;\nsetp.eq.u32 %q0, %t, 0;\n"
                           "@%q0 bra wait;\nsetp.ne.u32 %q1, %t, 32;\n@%q1 bra join;\ncount:\nadd.u32 %r0, %r0, 1;\n"
                           "setp.lt.u32 %q2, %r0, 300000;\n@%q2 bra count;\nst.release.cta.shared.u32 [flag], 1;\n"
                           "bra join;\nwait:\nld.acquire.cta.shared.u32 %r1, [flag];\nsetp.eq.u32 %q3, %r1, 0;\n"
                           "@%q3 bra wait;\njoin:\nbar.sync 0;"));
    machine.run("k", {1, 1, 1}, {64, 1, 1}, {}, 0, schedule);
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
  });
}

/// Lane 0 waits until the others of its warp have counted themselves, which they do after the join; then `meet`.
static std::string waitingForItsWarp(const std::string &meet) {
  return kernel(1, ".reg .b32 %r<8>; .reg .pred %q<4>; .reg .b64 %at;",
                "mov.b32 %r1, 7;\nsetp.ne.u32 %q0, %n2, 0;\n@%q0 bra join;\nwait:\n"
                "ld.acquire.gpu.global.u32 %r0, [%p0];\nsetp.lt.u32 %q1, %r0, 31;\n@%q1 bra wait;\nmov.b32 %r1, 9;\n"
                "join:\n@%q0 red.release.gpu.global.add.u32 [%p0], 1;\n" +
                    meet + "mul.wide.u32 %at, %n2, 4;\nadd.u64 %at, %p0, %at;\nst.global.u32 [%at+4], %r2;");
}

// Lanes are released if nothing else can run. They reconverge with the lane that waited for them at the next common
// instruction, and each sees its data.
TEST(SpinningTest, LanesThatAreLetGoMeetAgain) {
  for (const char *meet : {"shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\n", "redux.sync.max.u32 %r2, %r1, -1;\n",
                           "bar.warp.sync -1;\nactivemask.b32 %r2;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, %r2;\n",
                           "bar.sync 0;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\n",
                           "setp.lt.u32 %q2, %n2, 16;\n@%q2 bra low;\nmov.b32 %r2, 9;\nbra both;\n"
                           "low:\nshfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffff;\nboth:\n"}) {
    SCOPED_TRACE(meet);
    inAllSchedules([&](const Schedule &schedule) {
      Machine machine(waitingForItsWarp(meet));
      const uint32_t *words = machine.buffer(std::vector<uint32_t>(33));
      machine.run("k", {1, 1, 1}, {32, 1, 1}, {address(words)}, 0, schedule);
      EXPECT_EQ(machine.found(), std::vector<std::string>{});
      EXPECT_EQ(std::vector<uint32_t>(words + 1, words + 33), std::vector<uint32_t>(32, 9));
    });
  }
}

// An endless wait is reported, and the launch ends. The report has the waiting loops and the missing lanes.
TEST(SpinningTest, WhatNobodyWillEverWriteIsADeadlock) {
  inAllSchedules([](Schedule schedule) {
    schedule.maxSteps = 1000;
    Machine machine(kernel(1, ".reg .b32 %r; .reg .pred %q;",
                           "again:\nld.volatile.global.u32 %r, [%p0];\nsetp.eq.u32 %q, %r, 0;\n@%q bra again;"));
    machine.run("k", {3, 1, 1}, {32, 1, 1}, {address(machine.buffer<uint32_t>({0}))}, 0, schedule);
    EXPECT_EQ(machine.found(), std::vector<std::string>{"deadlock: lanes 0xffffffff of warp 0 spin in a loop until "
                                                        "memory changes, and no thread can make progress"});
    EXPECT_EQ(machine.findings.list().at(0).count, 3);
  });
}

// Such kernels pass on a flag with its value in one access: a strong vector is never seen in part.
TEST(SpinningTest, StrongVectorsMoveAtOnce) {
  for (const auto &[type, size, elements] : {std::tuple("u32", 4, 2), {"u32", 4, 4}, {"u64", 8, 2}, {"u16", 2, 4}}) {
    SCOPED_TRACE(fmt::format("v{}.{}", elements, type));
    std::string writes = "%r0", reads = "%r1";
    for (int i = 1; i < elements; ++i) {
      writes += ", %r0";
      reads += fmt::format(", %r{}", i + 1);
    }
    Machine machine(kernel(
        2, fmt::format(".reg .b{} %r<8>; .reg .b32 %i, %wrong; .reg .b64 %at; .reg .pred %q<4>;", size * 8),
        fmt::format("mov.b32 %i, 0;\nmov.b32 %wrong, 0;\nmul.wide.u32 %at, %n2, 16;\nadd.u64 %at, %p0, %at;\n"
                    "setp.ne.u32 %q0, %n0, 0;\n@%q0 bra read;\nwrite:\nadd.u32 %i, %i, 1;\ncvt.u{3}.u32 %r0, %i;\n"
                    "st.relaxed.gpu.global.v{0}.{1} [%at], {{{2}}};\nsetp.lt.u32 %q1, %i, 20000;\n@%q1 bra write;\n"
                    "bra end;\nread:\nadd.u32 %i, %i, 1;\nld.relaxed.gpu.global.v{0}.{1} {{{4}}}, [%at];\n"
                    "setp.ne.u{3} %q2, %r1, %r{0};\n@%q2 add.u32 %wrong, %wrong, 1;\n"
                    "setp.lt.u32 %q1, %i, 20000;\n@%q1 bra read;\nend:\nred.global.add.u32 [%p1], %wrong;",
                    elements, type, writes, size * 8, reads)));
    const uint32_t *wrong = machine.buffer<uint32_t>({0});
    if (size * elements > 8)
      machine.varies = "a vector is several accesses by the ISA, and an H100 has torn one";
    machine.run("k", {2, 1, 1}, {32, 1, 1}, {address(machine.buffer(std::vector<uint32_t>(128))), address(wrong)}, 0,
                {.threads = 2});
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    EXPECT_EQ(wrong[0], 0u);
  }
}

// --- Kernels of nvcc -----------------------------------------------------------------------------------------------

// A barrier of the whole grid: more blocks than threads of the host, and more than were once begun together.
TEST(SpinningTest, GridBarrier) {
  const int blocks = 48, threads = 64, n = blocks * threads, rounds = 4;
  inAllSchedules([&](const Schedule &schedule) {
    Machine machine(compiled("grid_barrier"));
    const uint32_t *count = machine.buffer<uint32_t>({0});
    const int32_t *rows = machine.buffer(std::vector<int32_t>(static_cast<size_t>(n) * (rounds + 1)));
    machine.run("grid_barrier", {blocks, 1, 1}, {threads, 1, 1}, {address(count), address(rows), rounds}, 0, schedule);
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    std::vector<int32_t> want(static_cast<size_t>(n));
    std::iota(want.begin(), want.end(), 0);
    for (int round = 1; round <= rounds; ++round) {
      const std::vector<int32_t> before = want;
      for (int i = 0; i < n; ++i)
        want[static_cast<size_t>(i)] = before[static_cast<size_t>(i)] + before[static_cast<size_t>((i + threads) % n)];
    }
    EXPECT_EQ(std::vector<int32_t>(rows + size_t{n} * rounds, rows + size_t{n} * (rounds + 1)), want);
  });
}

// A scan that looks back over the blocks before.
TEST(SpinningTest, LookBackScan) {
  const int blocks = 70, n = blocks * 128;
  std::vector<int32_t> in(static_cast<size_t>(n)), want(static_cast<size_t>(n));
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<int32_t>(i * 37 % 101) - 50;
  std::partial_sum(in.begin(), in.end(), want.begin());
  inAllSchedules([&](const Schedule &schedule) {
    Machine machine(compiled("scan"));
    const uint32_t *ticket = machine.buffer<uint32_t>({0});
    const uint64_t *states = machine.buffer(std::vector<uint64_t>(blocks));
    const int32_t *from = machine.buffer(in), *to = machine.buffer(std::vector<int32_t>(in.size()));
    machine.run("scan", {blocks, 1, 1}, {128, 1, 1}, {address(ticket), address(states), address(from), address(to)}, 0,
                schedule);
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    EXPECT_EQ(std::vector<int32_t>(to, to + n), want);
  });
}

// Blocks share the steps of products across tiles (stream-K); the first block of a tile waits for later ones.
TEST(SpinningTest, StreamK) {
  const int tiles = 5, steps = 7, blocks = 4, threads = 64;
  std::vector<int32_t> a(tiles * steps), b(steps * threads), want(tiles * threads);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = static_cast<int32_t>(i % 11) - 5;
  for (size_t i = 0; i < b.size(); ++i)
    b[i] = static_cast<int32_t>(i % 13) - 6;
  for (size_t tile = 0; tile < tiles; ++tile)
    for (size_t t = 0; t < threads; ++t)
      for (size_t k = 0; k < steps; ++k)
        want[tile * threads + t] += a[tile * steps + k] * b[k * threads + t];
  inAllSchedules([&](const Schedule &schedule) {
    Machine machine(compiled("stream_k"));
    const int32_t *c = machine.buffer(std::vector<int32_t>(want.size()));
    machine.run("stream_k", {blocks, 1, 1}, {threads, 1, 1},
                {address(machine.buffer(a)), address(machine.buffer(b)), address(c),
                 address(machine.buffer(std::vector<int32_t>(blocks * threads))),
                 address(machine.buffer(std::vector<int32_t>(blocks))), steps, tiles},
                0, schedule);
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    EXPECT_EQ(std::vector<int32_t>(c, c + want.size()), want);
  });
}

// Two warps poll through a barrier of their own; a third, which takes no part in it, counts and then ends their loop.
TEST(SpinningTest, AWarpOutsideALoopThroughABarrierRunsOn) {
  inAllSchedules([&](const Schedule &schedule) {
    Machine machine(kernel(1, ".shared .align 4 .b32 flag; .reg .b32 %r<4>; .reg .pred %q<4>;",
                           "mov.b32 %r3, 0;\nst.volatile.shared.b32 [flag], %r3;\nbar.sync 0;\n"
                           "setp.ge.u32 %q0, %n2, 64;\n@%q0 bra producer;\n"
                           "poll:\nld.volatile.shared.b32 %r1, [flag];\nsetp.eq.u32 %q1, %r1, 0;\n"
                           "bar.red.and.pred %q2, 1, 64, %q1;\n@%q2 bra poll;\nbra end;\n"
                           "producer:\nmov.b32 %r2, 0;\n"
                           "count:\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %q2, %r2, 300000;\n@%q2 bra count;\n"
                           "mov.b32 %r3, 1;\nst.volatile.shared.b32 [flag], %r3;\n"
                           "end:\nst.global.b32 [%p0], 7;\n"));
    const uint32_t *out = machine.buffer<uint32_t>({0});
    machine.run("k", {1, 1, 1}, {96, 1, 1}, {address(out)}, 0, schedule);
    for (const std::string &finding : machine.found())
      EXPECT_EQ(finding.find("deadlock"), std::string::npos) << finding;
    EXPECT_EQ(out[0], 7u);
  });
}

// A function with a barrier is called many times, each time in an equal state but for its return address.
TEST(SpinningTest, CallsOfAFunctionWithABarrierEnd) {
  std::string calls;
  for (int i = 0; i < 100; ++i)
    calls += "call f, ();\n";
  Machine machine(module(".func f () {\nbar.sync 0;\nret;\n}\n.visible .entry k(.param .u64 k0) {\n.reg .b64 %p0;\n"
                         "ld.param.u64 %p0, [k0];\n" +
                         calls + "st.global.b32 [%p0], 7;\nret;\n}\n"));
  const uint32_t *out = machine.buffer<uint32_t>({0});
  machine.run("k", {1, 1, 1}, {64, 1, 1}, {address(out)});
  for (const std::string &finding : machine.found())
    EXPECT_EQ(finding.find("deadlock"), std::string::npos) << finding;
  EXPECT_EQ(out[0], 7u);
}

// --- Deadlocks -------------------------------------------------------------------------------------------------------

// The report of a deadlock: which threads wait for which event, which have arrived, and where the others are.

/// The findings in a block of `threads` threads that runs the body, which begins on line 18 of the text.
static std::vector<std::string> deadlockOf(const std::string &body, int threads) {
  Machine machine(hopperKernel(0,
                               ".shared .align 16 .b64 bar;\n.shared .align 16 .b8 data[64];\n"
                               ".reg .pred %q<2>;\n.reg .b64 %s;",
                               body));
  machine.run("k", {1, 1, 1}, {threads, 1, 1}, {});
  return machine.found();
}

TEST(DeadlockTest, OfABarrierThatTooFewReach) {
  EXPECT_EQ(deadlockOf("setp.ge.u32 %q0, %n2, 64;\n@%q0 bra END;\nbar.sync 2, 96;\nEND:\n", 128),
            (std::vector<std::string>{"deadlock: barrier 2 waits for 96 threads, but only 64 have come, from warps 0 "
                                      "and 1, and no thread can make progress; warps 2 and 3: ended"}));
}

TEST(DeadlockTest, OfTwoBarriersThatWaitForEachOther) {
  EXPECT_EQ(
      deadlockOf("setp.ge.u32 %q0, %n2, 32;\n@%q0 bra OTHER;\nbar.sync 1;\nbra END;\nOTHER:\nbar.sync 2;\nEND:\n", 64),
      (std::vector<std::string>{"deadlock: barrier 1 waits for 64 threads, but only 32 have come, from warp 0, and no "
                                "thread can make progress; warp 1: at barrier 2, PTX line 23",
                                "deadlock: barrier 2 waits for 64 threads, but only 32 have come, from warp 1, and no "
                                "thread can make progress; warp 0: at barrier 1, PTX line 20"}));
}

TEST(DeadlockTest, OfAClustersBarrier) {
  EXPECT_EQ(
      deadlockOf("setp.ge.u32 %q0, %n2, 32;\n@%q0 bra OTHER;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                 "OTHER:\nbar.sync 0;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
                 64),
      (std::vector<std::string>{"deadlock: the cluster's barrier waits for 64 threads, but only 32 have come, "
                                "from warp 0, and no thread can make progress; warp 1: at barrier 0, PTX line 23",
                                "deadlock: barrier 0 waits for 64 threads, but only 32 have come, from warp 1, "
                                "and no thread can make progress; warp 0: at the cluster's barrier, PTX line 21"}));
}

TEST(DeadlockTest, OfAnMbarrierThatLacksArrivals) {
  EXPECT_EQ(deadlockOf("setp.ne.u32 %q0, %n2, 0;\n@!%q0 mbarrier.init.shared::cta.b64 [bar], 2;\nbar.sync 0;\n"
                       "setp.ge.u32 %q1, %n2, 32;\n@%q1 bra OTHER;\n"
                       "@!%q0 mbarrier.arrive.shared::cta.b64 _, [bar];\nbar.sync 1, 32;\nbra WAIT;\n"
                       "OTHER:\nbar.sync 3, 32;\nexit;\n"
                       "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra WAIT;\n",
                       64),
            (std::vector<std::string>{
                "deadlock: lanes 0xffffffff of warp 0 wait for the end of phase 0 of the mbarrier at 0: 1 of 2 "
                "arrivals and 0 bytes are pending, warp 0 arrived, and no thread can make progress; warp 1: ended"}));
}

TEST(DeadlockTest, OfBytesThatNobodyCopies) {
  EXPECT_EQ(
      deadlockOf("mbarrier.init.shared::cta.b64 [bar], 1;\n"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 48;\n"
                 "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra WAIT;\n",
                 1),
      (std::vector<std::string>{
          "deadlock: lanes 0x1 of warp 0 wait for the end of phase 0 of the mbarrier at 0: 0 of 1 arrivals and "
          "48 bytes are pending, which no copy under way brings, warp 0 arrived, and no thread can make progress"}));
}

// A lane that waits does not keep the others of its warp from coming; here they have left.
TEST(DeadlockTest, OfALaneThatWaitsForItsWarp) {
  EXPECT_EQ(deadlockOf("setp.ne.u32 %q0, %n2, 0;\n@%q0 exit;\nmbarrier.init.shared::cta.b64 [bar], 2;\n"
                       "mbarrier.arrive.shared::cta.b64 _, [bar];\n"
                       "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra WAIT;\n",
                       32),
            (std::vector<std::string>{
                "deadlock: lanes 0x1 of warp 0 wait for the end of phase 0 of the mbarrier at 0: 1 of 2 arrivals and 0 "
                "bytes are pending, warp 0 arrived, and no thread can make progress; warp 0: ended in part"}));
}

TEST(DeadlockTest, OfAQuestionThatIsAskedForEver) {
  EXPECT_EQ(deadlockOf("mbarrier.init.shared::cta.b64 [bar], 1;\n"
                       "WAIT:\nmbarrier.test_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra WAIT;\n",
                       1),
            (std::vector<std::string>{"deadlock: lanes 0x1 of warp 0 wait for the end of phase 0 of the mbarrier at 0: "
                                      "1 of 1 arrivals and 0 bytes are pending, and no thread can make progress"}));
}

// A loop that counts is no deadlock: it ends after a limit of instructions, and the error has its line.
TEST(DeadlockTest, OrALoopThatIsGivenUp) {
  Machine machine(kernel(0, ".reg .b32 %r; .reg .pred %q;",
                         "mov.b32 %r, 1;\nAGAIN:\nadd.u32 %r, %r, 2;\nsetp.ne.u32 %q, %r, 0;\n@%q bra AGAIN;"));
  expectError(
      [&] { machine.run("k", {1, 1, 1}, {64, 1, 1}, {}, 0, {.checks = Checks::named("-all"), .maxSteps = 100000}); },
      {"kernel 'k': warp 0 has not ended after", "PTX line"});
}

} // namespace kiln::simulator::test
