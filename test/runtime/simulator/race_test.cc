// Races: accesses to the same bytes that nothing orders.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::simulator::test {

/// The kinds of findings, each once, for the kernel k of a text, which has one pointer.
static std::vector<std::string> kindsOf(const std::string &text, int threads, int blocks = 1, uint64_t bytes = 4096,
                                        const Schedule &schedule = {}) {
  Machine machine(text);
  const uint8_t *memory = machine.buffer(std::vector<uint8_t>(bytes));
  machine.run("k", {blocks, 1, 1}, {threads, 1, 1}, {address(memory)}, 0, schedule);
  std::vector<std::string> names;
  for (const std::string &text : machine.found())
    names.push_back(text.substr(0, text.find(':')));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// For a kernel's body, in blocks of `threads` threads.
static std::vector<std::string> kinds(const std::string &registers, const std::string &body, int threads,
                                      int blocks = 1, uint64_t bytes = 4096, const Schedule &schedule = {}) {
  return kindsOf(forFirstTarget(kernel(1, registers, body)), threads, blocks, bytes, schedule);
}
static std::vector<std::string> hopperKinds(const std::string &registers, const std::string &body, int threads) {
  return kindsOf(hopperKernel(1, registers, body), threads);
}

using Names = std::vector<std::string>;

static const std::string place = ".shared .align 16 .b8 place[1024];\n.reg .b32 %r<8>; .reg .pred %q; .reg .b64 %g;\n";
/// Thread i writes word i of shared memory, which holds 0; then `between`; then it reads word i ^ `other`.
static std::string exchange(const std::string &between, int other) {
  return "mov.u32 %r0, place;\nshl.b32 %r1, %t, 2;\nadd.u32 %r2, %r0, %r1;\nst.shared.u32 [%r2], 0;\nbar.sync "
         "0;\nst.shared.u32 [%r2], %t;\n" +
         between + "\nxor.b32 %r3, %r1, " + std::to_string(4 * other) +
         ";\nadd.u32 %r2, %r0, %r3;\nld.shared.u32 %r4, [%r2];";
}

// A read of another warp's write is a race without a barrier in between, and none with one.
TEST(RaceTest, BetweenWarps) {
  EXPECT_EQ(kinds(place, exchange("", 32), 64), Names{"race"});
  EXPECT_EQ(kinds(place, exchange("bar.sync 0;", 32), 64), Names{});
  EXPECT_EQ(kinds(place, exchange("bar.warp.sync -1;", 32), 64), Names{"race"});
}

// Threads that write equal values do not race, also with stores of matrices, whose rows other lanes hold.
TEST(RaceTest, EqualValues) {
  const std::string rows = "and.b32 %r1, %t, 31;\nshl.b32 %r2, %r1, 4;\nmov.u32 %r0, place;\nadd.u32 %r2, %r0, %r2;\n";
  const auto stored = [&](const std::string &value, const std::string &trans) {
    return rows + "stmatrix.sync.aligned.m8n8.x4" + trans + ".shared.b16 [%r2], {" + value + ", %r1, %r1, " + value +
           "};";
  };
  for (const std::string trans : {"", ".trans"}) {
    EXPECT_EQ(hopperKinds(place, stored("%r1", trans), 64), Names{});
    EXPECT_EQ(hopperKinds(place, stored("%t", trans), 64), Names{"race"});
  }
  EXPECT_EQ(kinds(place, "mov.u32 %r0, place;\nst.shared.u32 [%r0], 5;", 64), Names{});
  EXPECT_EQ(kinds(place, "mov.u32 %r0, place;\nst.shared.u32 [%r0], %t;", 64), (Names{"race", "race-lanes"}));
}

// Lanes of a warp need bar.warp.sync or a barrier; a lane needs nothing for its own accesses.
TEST(RaceTest, BetweenLanes) {
  EXPECT_EQ(kinds(place, exchange("", 1), 32), Names{"race-lanes"});
  EXPECT_EQ(kinds(place, exchange("bar.warp.sync -1;", 1), 32), Names{});
  EXPECT_EQ(kinds(place, exchange("bar.sync 0;", 1), 32), Names{});
  EXPECT_EQ(kinds(place, exchange("", 0), 64), Names{});
}

// A write after another thread's read races as the read after the write does.
TEST(RaceTest, WriteAfterRead) {
  const std::string again = "\nst.shared.u32 [%r2], 7;";
  EXPECT_EQ(kinds(place, exchange("bar.sync 0;", 32) + "bar.sync 0;" + again, 64), Names{});
  EXPECT_EQ(kinds(place, exchange("bar.sync 0;", 32) + "mov.u32 %r2, place;\nadd.u32 %r2, %r2, %r1;" + again, 64),
            Names{"race"});
}

// One thread may write after a barrier what many warps have read before it. Without the barrier that is a race.
TEST(RaceTest, ReadsOfManyBeforeABarrier) {
  const auto readAll = [](const std::string &between) {
    return "ld.global.u32 %r0, [%p0 + 12];\n" + between +
           "\nmul.wide.u32 %g, %t, 4;\nadd.u64 %g, %g, %p0;\nld.global.u32 %r1, [%g];\nst.global.u32 [%g], %r1;";
  };
  EXPECT_EQ(kinds(place, readAll("bar.sync 0;"), 96), Names{});
  EXPECT_EQ(kinds(place, readAll(""), 96), (Names{"race", "race-lanes"}));
}

// Two numbered barriers order only the threads that arrive at the same one.
TEST(RaceTest, NamedBarriers) {
  const std::string apart = "setp.lt.u32 %q, %t, 64;\n@%q bar.sync 1, 64;\n@!%q bar.sync 2, 64;";
  EXPECT_EQ(kinds(place, exchange(apart, 32), 128), Names{});
  EXPECT_EQ(kinds(place, exchange(apart, 64), 128), Names{"race"});
}

// A thread that only arrives is ordered before those that wait, but they are not ordered before it.
TEST(RaceTest, ArrivingOrdersOneWay) {
  const std::string head = "setp.ge.u32 %q, %t, 64;\n@%q exit;\nsetp.lt.u32 %q, %t, 32;\nmov.u32 %r0, place;\nshl.b32 "
                           "%r1, %t, 2;\nand.b32 %r1, %r1, "
                           "127;\nadd.u32 %r2, %r0, %r1;\n";
  const std::string forth = "@%q st.shared.u32 [%r2], %t;\n@%q bar.arrive 1, 64;\n@!%q bar.sync 1, 64;\n@!%q "
                            "ld.shared.u32 %r3, [%r2];\n";
  EXPECT_EQ(kinds(place, head + forth, 96), Names{});
  EXPECT_EQ(kinds(place, head + forth + "@%q st.shared.u32 [%r2], 5;", 96), Names{"race"});
}

// Threads that write different bytes of one word do not race. Threads that write the same byte do, unless the values
// are equal.
TEST(RaceTest, IsExactToTheByte) {
  const auto store = [](const std::string &address, const std::string &value) {
    return "mov.u32 %r0, place;\n" + address + "\nadd.u32 %r0, %r0, %r1;\ncvt.u16.u32 %h, " + value +
           ";\nst.shared.b8 [%r0], %h;";
  };
  const std::string registers = place + ".reg .b16 %h;";
  EXPECT_EQ(kinds(registers, store("mov.u32 %r1, %t;", "%t"), 64), Names{});
  EXPECT_EQ(kinds(registers, store("shr.u32 %r1, %t, 1;", "%t"), 64), Names{"race-lanes"});
  EXPECT_EQ(kinds(registers, store("shr.u32 %r1, %t, 1;", "7"), 64), Names{});
  EXPECT_EQ(kinds(registers, store("and.b32 %r1, %t, 31;", "%t"), 64), Names{"race"});
}

// Atomic updates do not race with each other; a concurrent plain read does.
TEST(RaceTest, Atomics) {
  const std::string set = "mov.u32 %r0, place;\nsetp.eq.u32 %q, %t, 0;\n@%q st.shared.u32 [%r0], 0;\nbar.sync 0;\n";
  EXPECT_EQ(kinds(place, set + "red.shared.add.u32 [%r0], 1;\nbar.sync 0;\nld.shared.u32 %r1, [%r0];", 64), Names{});
  EXPECT_EQ(kinds(place, set + "red.shared.add.u32 [%r0], 1;\nld.shared.u32 %r1, [%r0];", 64),
            (Names{"race", "race-lanes"}));
}

// Only atomics order the blocks of a launch: a flag with fences on both sides.
TEST(RaceTest, BetweenPrograms) {
  const std::string registers = ".reg .b32 %r<8>; .reg .pred %q; .reg .b64 %g;\n";
  EXPECT_EQ(kinds(registers, "mov.u32 %r0, %ctaid.x;\nst.global.u32 [%p0], %r0;", 1, 2), Names{"race-programs"});
  EXPECT_EQ(kinds(registers, "red.global.add.u32 [%p0], 1;", 1, 2), Names{});
  const auto handOver = [&](const std::string &before, const std::string &after) {
    return kinds(registers,
                 "mov.u32 %r0, %ctaid.x;\nsetp.eq.u32 %q, %r0, 0;\n@!%q bra wait;\nst.global.u32 [%p0+64], 5;\n" +
                     before +
                     "atom.global.exch.b32 %r1, [%p0], 1;\nret;\nwait:\natom.global.add.u32 %r1, [%p0], 0;\n"
                     "setp.ne.u32 %q, %r1, 1;\n@%q bra wait;\n" +
                     after + "ld.global.u32 %r2, [%p0+64];",
                 1, 2);
  };
  EXPECT_EQ(handOver("membar.gl;\n", "membar.gl;\n"), Names{});
  EXPECT_EQ(handOver("", "membar.gl;\n"), Names{"race-programs"});
  EXPECT_EQ(handOver("membar.gl;\n", ""), Names{"race-programs"});
}

// An instruction's own order has the effect of fences around it. A reduction releases, but does not acquire, not even
// with a fence after it.
TEST(RaceTest, OrdersOfInstructions) {
  const std::string registers = ".reg .b32 %r<8>; .reg .pred %q; .reg .b64 %g;\n";
  const auto handOver = [&](const std::string &tell, const std::string &look) {
    return kinds(registers,
                 "mov.u32 %r0, %ctaid.x;\nsetp.eq.u32 %q, %r0, 0;\n@!%q bra wait;\nst.global.u32 [%p0+64], 5;\n" +
                     tell + "\nret;\nwait:\n" + look +
                     "\nsetp.ne.u32 %q, %r1, 1;\n@%q bra wait;\nld.global.u32 %r2, [%p0+64];",
                 1, 2);
  };
  const std::string acquire = "ld.acquire.gpu.global.u32 %r1, [%p0];";
  for (const char *tell :
       {"st.release.gpu.global.u32 [%p0], 1;", "red.release.gpu.global.add.u32 [%p0], 1;",
        "atom.release.gpu.global.exch.b32 %r1, [%p0], 1;", "atom.acq_rel.gpu.global.cas.b32 %r1, [%p0], 0, 1;"})
    EXPECT_EQ(handOver(tell, acquire), Names{}) << tell;
  for (const char *tell : {"st.relaxed.gpu.global.u32 [%p0], 1;", "red.global.add.u32 [%p0], 1;",
                           "atom.global.exch.b32 %r1, [%p0], 1;", "atom.acquire.gpu.global.cas.b32 %r1, [%p0], 0, 1;"})
    EXPECT_EQ(handOver(tell, acquire), Names{"race-programs"}) << tell;
  const std::string release = "st.release.gpu.global.u32 [%p0], 1;";
  EXPECT_EQ(handOver(release, "atom.acquire.gpu.global.add.u32 %r1, [%p0], 0;"), Names{});
  for (const char *look : {"ld.relaxed.gpu.global.u32 %r1, [%p0];", "atom.release.gpu.global.add.u32 %r1, [%p0], 0;"})
    EXPECT_EQ(handOver(release, look), Names{"race-programs"}) << look;
  const std::string read = "ld.relaxed.gpu.global.u32 %r1, [%p0];";
  EXPECT_EQ(handOver(release, read + "\natom.global.add.u32 %r3, [%p0], 0;\nfence.acq_rel.gpu;"), Names{});
  // The reduction's own word, so that only the reduction could acquire. One host thread runs the blocks in order: if
  // the second ran first, there would be nothing to acquire.
  const auto reduced = [&](const std::string &update) {
    return kinds(registers,
                 "mov.u32 %r0, %ctaid.x;\nsetp.eq.u32 %q, %r0, 0;\n@!%q bra other;\nst.global.u32 [%p0+64], 5;\n"
                 "red.release.gpu.global.add.u32 [%p0], 1;\nret;\nother:\n" +
                     update + "\nld.global.u32 %r2, [%p0+64];",
                 1, 2, 4096, {.threads = 1});
  };
  EXPECT_EQ(reduced("atom.acquire.gpu.global.add.u32 %r1, [%p0], 1;"), Names{});
  EXPECT_EQ(reduced("atom.global.add.u32 %r1, [%p0], 1;\nfence.acq_rel.gpu;"), Names{});
  EXPECT_EQ(reduced("red.global.add.u32 [%p0], 1;\nfence.acq_rel.gpu;"), Names{"race-programs"});
}

// A strong access with block scope, first or second, races with unordered ones of another block. It does not race
// within the block, or if a GPU-wide order is in between.
TEST(RaceTest, ScopesOfBlocks) {
  const std::string registers = ".reg .b32 %r<8>; .reg .pred %q; .reg .b64 %g; .reg .b16 %h;\n";
  const auto both = [&](const std::string &first, const std::string &second, int threads, int blocks) {
    return kinds(registers,
                 "mov.u32 %r0, %ctaid.x;\nsetp.eq.u32 %q, %r0, 0;\n@!%q bra other;\n" + first + "\nret;\nother:\n" +
                     second,
                 threads, blocks, 4096, {.threads = 1});
  };
  const auto add = [](const std::string &scope) { return "red.relaxed." + scope + ".global.add.u32 [%p0], 1;"; };
  for (const char *scope : {"cta", "cluster"}) {
    EXPECT_EQ(both(add(scope), "", 64, 1), Names{}) << scope;
    EXPECT_EQ(both(add(scope), add(scope), 64, 2), Names{"race-programs"}) << scope;
    EXPECT_EQ(both(add(scope), add("gpu"), 1, 2), Names{"race-programs"}) << scope;
    EXPECT_EQ(both(add("gpu"), add(scope), 1, 2), Names{"race-programs"}) << scope;
  }
  EXPECT_EQ(both(add("gpu"), add("sys"), 64, 2), Names{});
  const std::string load = "ld.relaxed.cta.global.u32 %r1, [%p0];", store = "st.relaxed.cta.global.u32 [%p0], 1;",
                    wideLoad = "ld.relaxed.gpu.global.u32 %r1, [%p0];";
  EXPECT_EQ(both(load, load, 1, 2), Names{});
  EXPECT_EQ(both(load, add("gpu"), 1, 2), Names{"race-programs"});
  EXPECT_EQ(both(store, wideLoad, 1, 2), Names{"race-programs"});
  EXPECT_EQ(both(wideLoad, store, 1, 2), Names{"race-programs"});
  EXPECT_EQ(both(add("cta"), "red.relaxed.gpu.global.add.u32 [%p0+4], 1;", 1, 2), Names{});
  // Other bytes of one word are other elements.
  EXPECT_EQ(both("mov.u16 %h, 1;\nst.relaxed.cta.global.b16 [%p0], %h;",
                 "mov.u16 %h, 1;\nst.relaxed.gpu.global.b16 [%p0+2], %h;", 1, 2),
            Names{});
  const std::string release = add("cta") + "\nred.release.gpu.global.add.u32 [%p0+64], 1;",
                    acquire = "atom.acquire.gpu.global.add.u32 %r1, [%p0+64], 1;\n";
  EXPECT_EQ(both(release, acquire + add("cta"), 1, 2), Names{});
  EXPECT_EQ(both(release, acquire + add("gpu"), 1, 2), Names{});
}

// An order or a fence with block scope orders nothing for another block, and everything for its own.
TEST(RaceTest, OrdersOfBlocks) {
  const std::string registers = ".reg .b32 %r<8>; .reg .pred %q; .reg .b64 %g;\n";
  const auto names = [&](const std::string &tell, const std::string &look) { // block 1 waits for block 0
    return kinds(registers,
                 "mov.u32 %r0, %ctaid.x;\nsetp.eq.u32 %q, %r0, 0;\n@!%q bra look;\nst.global.u32 [%p0+64], 5;\n" +
                     tell + "\nret;\nlook:\n" + look +
                     "\nsetp.ne.u32 %q, %r1, 1;\n@%q bra look;\nld.global.u32 %r2, [%p0+64];",
                 1, 2);
  };
  const std::string store = "st.relaxed.gpu.global.u32 [%p0], 1;", load = "ld.relaxed.gpu.global.u32 %r1, [%p0];",
                    wide = "fence.acq_rel.gpu;\n", narrow = "fence.acq_rel.cta;\n", behind = "\nfence.acq_rel.gpu;",
                    acquire = "ld.acquire.gpu.global.u32 %r1, [%p0];";
  EXPECT_EQ(names(wide + store, acquire), Names{});
  EXPECT_EQ(names(narrow + store, acquire), Names{"race-programs"});
  EXPECT_EQ(names("membar.cta;\n" + store, acquire), Names{"race-programs"});
  EXPECT_EQ(names(wide + narrow + store, acquire), Names{});
  EXPECT_EQ(names("st.release.gpu.global.u32 [%p0], 1;", load + behind), Names{});
  EXPECT_EQ(names("st.release.gpu.global.u32 [%p0], 1;", load + "\nfence.acq_rel.cta;"), Names{"race-programs"});
  EXPECT_EQ(names("st.release.cta.global.u32 [%p0], 1;", acquire), Names{"race-programs"});
  EXPECT_EQ(names("st.release.sys.global.u32 [%p0], 1;", "ld.acquire.sys.global.u32 %r1, [%p0];"), Names{});
  // Within a block each of these is enough: thread 32 waits for thread 0.
  const auto within = [&](const std::string &tell, const std::string &look) {
    return kinds(registers,
                 "setp.eq.u32 %q, %t, 0;\n@%q bra first;\nsetp.ne.u32 %q, %t, 32;\n@%q exit;\nlook:\n" + look +
                     "\nsetp.ne.u32 %q, %r1, 1;\n@%q bra look;\nld.global.u32 %r2, [%p0+64];\nret;\nfirst:\n"
                     "st.global.u32 [%p0+64], 5;\n" +
                     tell,
                 64);
  };
  EXPECT_EQ(within(narrow + store, acquire), Names{});
  EXPECT_EQ(within("st.release.cta.global.u32 [%p0], 1;", "ld.acquire.cta.global.u32 %r1, [%p0];"), Names{});
  EXPECT_EQ(within("st.release.gpu.global.u32 [%p0], 1;", load + "\nfence.acq_rel.cta;"), Names{});
  EXPECT_EQ(within("st.release.gpu.global.u32 [%p0], 1;", "ld.acquire.cta.global.u32 %r1, [%p0];"), Names{});
  EXPECT_EQ(within(store, acquire), Names{"race"});
  EXPECT_EQ(within(narrow + store, load), Names{"race"});
}

// Order is transitive: what one thread acquired from another block, and released with the scope of the GPU, a second
// thread of its block acquires with block scope, too. What another block released itself, it does not acquire so.
TEST(RaceTest, OrdersOfBlocksAreHandedOn) {
  // Block 0 writes and publishes in the first word, thread 0 of block 1 waits for it and publishes in the second, for
  // which thread 32 waits. `skip`: it waits for the first word.
  const auto names = [](const std::string &tell, const std::string &look, bool skips = false) {
    const auto wait = [](const std::string &label, const std::string &loads, const std::string &place) {
      return fmt::format("{0}:\n{1}setp.ne.u32 %q, %r1, 1;\n@%q bra {0};\n", label,
                         fmt::format(fmt::runtime(loads), place));
    };
    return kinds(".reg .b32 %r<8>; .reg .pred %q; .reg .b64 %g;\n",
                 "setp.eq.u32 %q, %t, 0;\n@%q bra first;\n"
                 "setp.eq.u32 %q, %t, 64;\n@%q bra second;\nsetp.ne.u32 %q, %t, 96;\n@%q exit;\n" +
                     wait("third", look, skips ? "%p0" : "%p0+4") +
                     "ld.global.u32 %r2, [%p0+64];\nret;\nfirst:\nst.global.u32 [%p0+64], 5;\n"
                     "st.release.gpu.global.u32 [%p0], 1;\nret;\n" +
                     wait("second", "ld.acquire.gpu.global.u32 %r1, [{}];\n", "%p0") + tell,
                 64, 2);
  };
  const std::string release = "st.release.gpu.global.u32 [%p0+4], 1;\n",
                    fenced = "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%p0+4], 1;\n",
                    fencedInBlock = "fence.acq_rel.cta;\nst.relaxed.gpu.global.u32 [%p0+4], 1;\n",
                    acquire = "ld.acquire.cta.global.u32 %r1, [{}];\n",
                    behind = "ld.relaxed.gpu.global.u32 %r1, [{}];\nfence.acq_rel.cta;\n";
  for (const std::string &tell : {release, fenced, fencedInBlock})
    for (const std::string &look : {acquire, behind}) {
      EXPECT_EQ(names(tell, look), Names{}) << tell << look;
      EXPECT_EQ(names(tell, look, true), Names{"race-programs"}) << tell << look;
    }
}

// A fence of one lane leaves to another lane of its warp what that one has read before its own fence.
TEST(RaceTest, FencesOfLanesAreTheirOwn) {
  const auto wait = [](int word) { // for the word to become 1
    return fmt::format("W{0}:\nld.relaxed.gpu.global.u32 %r1, [%p0+{0}];\nsetp.ne.u32 %q, %r1, 1;\n@%q bra W{0};\n",
                       word);
  };
  const auto tell = [](int word) { return fmt::format("st.relaxed.gpu.global.u32 [%p0+{}], 1;\n", word); };
  for (const char *scope : {"gpu", "cta"}) {
    const std::string fence = fmt::format("fence.acq_rel.{};\n", scope);
    // Lane 0 writes and publishes, lane 1 reads that, and lane 2 has its fence before lane 1 goes on.
    const auto names = [&](const std::string &last) {
      return kinds(".reg .b32 %r<8>; .reg .pred %q; .reg .b64 %g;\n",
                   "setp.eq.u32 %q, %t, 0;\n@%q bra lane0;\nsetp.eq.u32 %q, %t, 2;\n@%q bra lane2;\n"
                   "setp.eq.u32 %q, %t, 32;\n@%q bra lane32;\nsetp.ne.u32 %q, %t, 1;\n@%q exit;\n" +
                       wait(0) + tell(4) + wait(12) + last + "ld.global.u32 %r2, [%p0+64];\nret;\n" +
                       "lane0:\nst.global.u32 [%p0+64], 5;\n" + fence + tell(0) + "ret;\n" + //
                       "lane2:\n" + wait(4) + fence + tell(8) + "ret;\n" +                   //
                       "lane32:\n" + wait(8) + tell(12),
                   64);
    };
    EXPECT_EQ(names(fence), Names{}) << scope;
    EXPECT_EQ(names(""), Names{"race-lanes"}) << scope;
  }
}

// A proxy fence counts for a thread that acquires the writes, also with the scope of the GPU.
TEST(RaceTest, ProxyFencesAreHandedOn) {
  const auto names = [](const std::string &fence, const std::string &scope) {
    return hopperKinds(
        ".shared .align 16 .b8 data[64];\n.reg .b32 %r<8>; .reg .pred %q;\n",
        fmt::format("setp.eq.u32 %q, %t, 0;\n@%q bra first;\nsetp.ne.u32 %q, %t, 32;\n@%q exit;\n"
                    "W:\nld.acquire.{1}.global.u32 %r1, [%p0];\nsetp.ne.u32 %q, %r1, 1;\n@%q bra W;\n"
                    "cp.async.bulk.global.shared::cta.bulk_group [%p0+64], [data], 16;\n"
                    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nret;\n"
                    "first:\nst.shared.v4.u32 [data], {{%t, %t, %t, %t}};\n{0}st.release.{1}.global.u32 [%p0], 1;\n",
                    fence, scope),
        64);
  };
  for (const char *scope : {"cta", "gpu"}) {
    EXPECT_EQ(names("fence.proxy.async;\n", scope), Names{}) << scope;
    EXPECT_EQ(names("", scope), Names{"proxy"}) << scope;
  }
}

// A write races with earlier reads of several blocks or warps, even if the writer is the first reader.
TEST(RaceTest, WritesOfWhatManyHaveRead) {
  const std::string global = ".reg .b32 %r<8>; .reg .pred %q; .reg .b64 %g;\n";
  const std::string read = "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%p0];\nmov.u32 %r4, %ctaid.x;\n";
  EXPECT_EQ(kinds(global, read, 1, 4), Names{});
  for (const char *block : {"0", "2", "3"})
    EXPECT_EQ(kinds(global, read + "setp.eq.u32 %q, %r4, " + block + ";\n@%q st.global.u32 [%p0+4], 9;", 1, 4),
              Names{"race-programs"})
        << block;
  const std::string shared = "mov.u32 %r0, place;\nsetp.eq.u32 %q, %t, 0;\n@%q st.shared.v4.u32 [%r0], {%t, %t, %t, "
                             "%t};\nbar.sync 0;\nld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%r0];\n";
  for (const int thread : {0, 32, 64, 96}) {
    const std::string write = "setp.eq.u32 %q, %t, " + std::to_string(thread) + ";\n@%q st.shared.u32 [%r0+8], 9;";
    EXPECT_EQ(kinds(place, shared + "bar.sync 0;\n" + write, 128), Names{}) << thread;
    const Names found = kinds(place, shared + write, 128);
    EXPECT_NE(std::find(found.begin(), found.end(), "race"), found.end()) << thread;
  }
}

// A read after a barrier replaces the records of all earlier reads, of any number of threads.
TEST(RaceTest, ReadsBehindABarrierCountAlone) {
  const std::string registers = ".reg .b32 %r<8>; .reg .pred %q;\n";
  for (const char *type : {"u8", "u16", "u32"}) {
    const std::string read = fmt::format("@%q ld.global.{} %r0, [%p0];\n", type),
                      twice = "setp.lt.u32 %q, %t, 64;\n" + read + "bar.sync 0;\nsetp.ge.u32 %q, %t, 64;\n" + read,
                      write = fmt::format("setp.eq.u32 %q, %t, 0;\n@%q st.global.{} [%p0], %t;\n", type);
    EXPECT_EQ(kinds(registers, twice + write, 96), Names{"race"}) << type;
    EXPECT_EQ(kinds(registers, twice + "bar.sync 0;\n" + write, 96), Names{}) << type;
  }
}

// The barrier that orders a block's other warps before the releasing thread counts as well.
TEST(RaceTest, BarrierBeforeAtomicHandOver) {
  const std::string registers = ".reg .b32 %r<8>; .reg .pred %q, %u; .reg .b64 %g;\n";
  const auto handOver = [&](const std::string &barrier) {
    return kinds(registers,
                 "mov.u32 %r0, %tid.x;\nmul.wide.u32 %g, %r0, 8;\nadd.u64 %g, %p0, %g;\nsetp.eq.u32 %u, %r0, 0;\n"
                 "mov.u32 %r0, %ctaid.x;\nsetp.eq.u32 %q, %r0, 0;\n"
                 "@!%q bra wait;\nst.global.u32 [%g+64], 5;\n" +
                     barrier +
                     "@%u atom.global.acq_rel.gpu.exch.b32 %r1, [%p0], 1;\nret;\nwait:\n"
                     "atom.global.acq_rel.gpu.add.u32 %r1, [%p0], 0;\nsetp.ne.u32 %q, %r1, 1;\n@%q bra wait;\n"
                     "ld.global.u32 %r2, [%g+64];",
                 64, 2);
  };
  EXPECT_EQ(handOver("bar.sync 0;\n"), Names{});
  EXPECT_EQ(handOver(""), Names{"race-programs"});
}

// A branch declared as uniform is a finding if lanes diverge there.
TEST(RaceTest, UniformBranches) {
  const auto branch = [](const std::string &limit) {
    return kinds(place, "setp.lt.u32 %q, %t, " + limit + ";\n@%q bra.uni low;\nmov.u32 %r1, 1;\nlow:\nmov.u32 %r2, 2;",
                 32);
  };
  EXPECT_EQ(branch("32"), Names{});
  EXPECT_EQ(branch("5"), Names{"uniform"});
}

// Checks have names, and can be disabled one by one.
TEST(RaceTest, ChecksAreSwitched) {
  EXPECT_FALSE(Checks::named("all,-race").has(Check::race));
  EXPECT_TRUE(Checks::named("all,-race").has(Check::raceLanes));
  EXPECT_FALSE(Checks::named("-race").has(Check::race));
  EXPECT_TRUE(Checks::named("-race").has(Check::bounds));
  EXPECT_TRUE(Checks::named("race,bounds").has(Check::bounds));
  EXPECT_FALSE(Checks::named("race,bounds").has(Check::inFlight));
  EXPECT_FALSE(Checks::named("bounds,alignment").needShadow());
  EXPECT_THROW(Checks::named("all,raze"), Error);
}

// --- Rows ----------------------------------------------------------------------------------------------------------

/// The suffix and the operand of an instruction on `bytes` bytes: `.v2.b32` and a list of registers.
static std::pair<std::string, std::string> operandOf(int bytes) {
  return bytes == 16  ? std::pair(".v4.b32", "{%r4, %r5, %r6, %r7}")
         : bytes == 8 ? std::pair(".v2.b32", "{%r4, %r5}")
         : bytes == 4 ? std::pair(".b32", "%r4")
         : bytes == 2 ? std::pair(".b16", "%h")
                      : std::pair(".b8", "%h");
}

/// The findings if some lanes store their `bytes` bytes, `then` runs, and each lane accesses those of lane t
/// ^ %x by the instruction that begins with `touch`. The lanes' bytes are contiguous, or `stride` bytes
/// apart.
static std::vector<std::string> rowFindings(int bytes, const std::string &then, int other, const std::string &touch,
                                            int lanes = 32, int stride = 0) {
  const auto [type, list] = operandOf(bytes);
  const std::string store = fmt::format("st.shared{} [%r1], {};\n", type, list),
                    read = fmt::format("ld.shared{} {}, [%r2];\n", type, list),
                    write =
                        fmt::format("add.u32 %r4, %r4, 1;\nadd.u16 %h, %h, 1;\nst.shared{} [%r2], {};\n", type, list);
  Machine machine(kernel(1, ".shared .align 128 .b8 place[4608];\n.reg .b32 %r<8>;\n.reg .b16 %h;\n.reg .pred %q;\n",
                         fmt::format("mov.u32 %r0, place;\nmad.lo.u32 %r1, %t, {0}, %r0;\nxor.b32 %r3, %t, {1};\n"
                                     "mad.lo.u32 %r2, %r3, {0}, %r0;\nmov.u32 %r4, %t;\nmov.u32 %r5, 0;\n"
                                     "mov.u32 %r6, 0;\nmov.u32 %r7, 0;\ncvt.u16.u32 %h, %t;\n",
                                     stride > 0 ? stride : bytes, other) +
                             store + then +
                             (touch == "ld"   ? read
                              : touch == "st" ? write
                                              : touch)));
  machine.run("k", {1, 1, 1}, {lanes, 1, 1}, {0});
  std::vector<std::string> checks;
  for (const std::string &text : machine.found())
    checks.push_back(text.substr(0, text.find(':')));
  return checks;
}

using Checks = std::vector<std::string>;
static const std::string meet = "bar.warp.sync -1;\n", betweenLanes = "race-lanes";

// Accesses to a row of 16 bytes, by one lane or by adjacent lanes, are recorded for each byte. A lane may access its
// own bytes again, and another lane's bytes only when something orders the two, at every width of access.
TEST(RaceTest, RowsKnowWhoTouchedTheirBytes) {
  for (const int bytes : {1, 2, 4, 8, 16}) {
    SCOPED_TRACE(bytes);
    const auto [type, list] = operandOf(std::min(bytes, 4));
    for (const char *touch : {"ld", "st"}) {
      EXPECT_EQ(rowFindings(bytes, "", 0, touch), Checks{});
      EXPECT_EQ(rowFindings(bytes, "", 1, touch), Checks{betweenLanes});
      EXPECT_EQ(rowFindings(bytes, "", 8, touch), Checks{betweenLanes});
      EXPECT_EQ(rowFindings(bytes, meet, 8, touch), Checks{});
      // Read by their writers, or by others after a barrier, then accessed by others.
      const std::string own = fmt::format("ld.shared{} {}, [%r1];\n", type, list),
                        others = meet + fmt::format("ld.shared{} {}, [%r2];\n", type, list);
      EXPECT_EQ(rowFindings(bytes, meet + own, 1, "st"), Checks{betweenLanes});
      EXPECT_EQ(rowFindings(bytes, meet + own, 1, "ld"), Checks{});
      EXPECT_EQ(rowFindings(bytes, others, 1, "st"), Checks{}); // by the same lane
      EXPECT_EQ(rowFindings(bytes, others, 1,
                            fmt::format("mov.u32 %r4, 77;\nmov.u16 %h, 77;\nst.shared{} [%r1], {};\n", type, list)),
                Checks{betweenLanes});
    }
    // By a few lanes, for which the row is recorded byte by byte.
    const std::string few = fmt::format("setp.lt.u32 %q, %t, 5;\n@%q ld.shared{} {}, [%r2];\n", type, list);
    EXPECT_EQ(rowFindings(bytes, "", 0, few), Checks{});
    EXPECT_EQ(rowFindings(bytes, "", 1, few), Checks{betweenLanes});
    // A whole row, by a lane that wrote a word of it: the others' words are another's.
    EXPECT_EQ(rowFindings(bytes, "", 0, "and.b32 %r2, %r1, -16;\nld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];\n"),
              bytes == 16 ? Checks{} : Checks{betweenLanes});
    EXPECT_EQ(rowFindings(bytes, meet, 0, "and.b32 %r2, %r1, -16;\nld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r2];\n"),
              Checks{});
  }
}

// By distant lanes, repeatedly.
TEST(RaceTest, LanesFarApartKnowWhoTouchedTheirBytes) {
  for (const int bytes : {1, 2, 4, 8}) {
    SCOPED_TRACE(bytes);
    const auto [type, list] = operandOf(bytes);
    const std::string own = fmt::format("ld.shared{0} {1}, [%r1];\nst.shared{0} [%r1], {1};\n", type, list);
    for (const char *touch : {"ld", "st"}) {
      const auto find = [&](const std::string &then, int other) {
        return rowFindings(bytes, then, other, touch, 32, 136);
      };
      EXPECT_EQ(find(own + own, 0), Checks{});
      EXPECT_EQ(find(own + own, 1), Checks{betweenLanes});
      EXPECT_EQ(find(own + own, 16), Checks{betweenLanes});
      EXPECT_EQ(find(own + own + meet, 16), Checks{});
      EXPECT_EQ(find(meet + own + own, 31), Checks{betweenLanes});
    }
  }
}

// Words that a few lanes access, repeatedly: each byte has its own history.
TEST(RaceTest, BytesKnowWhoTouchedThemLast) {
  for (const int bytes : {1, 2, 4}) {
    SCOPED_TRACE(bytes);
    const auto [type, list] = operandOf(bytes);
    const std::string own = fmt::format("ld.shared{0} {1}, [%r1];\nst.shared{0} [%r1], {1};\n", type, list),
                      others = fmt::format("ld.shared{0} {1}, [%r2];\n", type, list);
    for (const char *touch : {"ld", "st"}) {
      const auto find = [&](const std::string &then, int other) { return rowFindings(bytes, then, other, touch, 6); };
      EXPECT_EQ(find(own + own, 0), Checks{});
      EXPECT_EQ(find(own + own, 1), Checks{betweenLanes});
      EXPECT_EQ(find(own + meet, 1), Checks{});
      EXPECT_EQ(find(meet + own + meet + own, 1), Checks{betweenLanes});
      EXPECT_EQ(find(own + meet + others + others, 1), Checks{});
    }
    const std::string change = fmt::format("mov.u32 %r4, 77;\nmov.u16 %h, 77;\nst.shared{} [%r1], {};\n", type, list);
    EXPECT_EQ(rowFindings(bytes, own + meet + others, 1, change, 6), Checks{betweenLanes});
    EXPECT_EQ(rowFindings(bytes, own + meet + others + meet, 1, change, 6), Checks{});
  }
}

} // namespace kiln::simulator::test
