// Layouts and plans carried out by the simulator, which knows fragments, matrices and banks from the PTX ISA alone:
// values are put where layouts say, PTX moves or multiplies them, and what comes out is looked up by layouts again.

#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/Convert.h"
#include "dialect/simt/layout/Fragments.h"
#include "dialect/simt/layout/SwizzledLayout.h"
#include "runtime/simulator/Metrics.h"
#include "runtime/simulator/TensorMap.h"
#include "test/runtime/simulator/machine.h"

#include <bit>
#include <fmt/format.h>

using namespace kiln::simt;
using namespace kiln::simulator::test;
namespace simulator = kiln::simulator;

namespace {

using Words = std::vector<uint32_t>;

/// `{%d0, %d1, …}`.
std::string listOf(const std::string &name, unsigned count, unsigned first = 0) {
  std::string text;
  for (unsigned i = first; i < first + count; ++i)
    text += fmt::format("{}%{}{}", i > first ? ", " : "", name, i);
  return "{" + text + "}";
}

/// Loads, or stores, `count` 32-bit registers of each thread, one after the other in the memory of pointer %p`pointer`.
std::string moveAll(const char *op, const std::string &name, unsigned count, int pointer) {
  std::string text = fmt::format("mad.wide.u32 %x, %t, {}, %p{};\n", 4 * count, pointer);
  for (unsigned i = 0; i < count; ++i)
    text += op == std::string("ld") ? fmt::format("ld.global.b32 %{}{}, [%x+{}];\n", name, i, 4 * i)
                                    : fmt::format("st.global.b32 [%x+{}], %{}{};\n", 4 * i, name, i);
  return text;
}

/// The bits of a small integer in the operand type of an instruction: bf16, tf32 or s8.
uint32_t encoded(unsigned bits, int value) {
  const auto single = std::bit_cast<uint32_t>(static_cast<float>(value));
  return bits == 8 ? static_cast<uint8_t>(value) : bits == 16 ? single >> 16 : single;
}

int valueA(int64_t m, int64_t k) { return static_cast<int>(m * 3 + k * 5 + m * k % 11) % 7 - 3; }
int valueB(int64_t k, int64_t n) { return static_cast<int>(k * 2 + n * 7 + k * n % 13) % 5 - 2; }

/// The registers of all threads, packed into words: what `value` gives for each stored element's position.
template <class Value> Words packed(const TileLayout &layout, unsigned bits, Value value) {
  const auto perWord = static_cast<int64_t>(32 / bits);
  Words words;
  for (unsigned warp = 0; warp < layout.numWarps(); ++warp)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t stored = 0; stored < layout.numStored(); ++stored) {
        if (stored % perWord == 0)
          words.push_back(0);
        const auto position = layout.positionOf(stored, {lane, warp});
        words.back() |= encoded(bits, value(position[0], position[1])) << (stored % perWord * bits);
      }
  return words;
}

/// Compares D's words of all threads with the product.
void expectProduct(const TileLayout &acc, const uint32_t *words, int64_t K, bool isInteger) {
  for (unsigned thread = 0; thread < acc.numWarps() * numLanes; ++thread)
    for (int64_t stored = 0; stored < acc.numStored(); ++stored) {
      const auto position = acc.positionOf(stored, {thread % numLanes, thread / numLanes});
      int want = 0;
      for (int64_t k = 0; k < K; ++k)
        want += valueA(position[0], k) * valueB(k, position[1]);
      const uint32_t word = words[thread * acc.numStored() + stored];
      const int got = isInteger ? static_cast<int>(word) : static_cast<int>(std::bit_cast<float>(word));
      ASSERT_EQ(got, want) << acc.text() << ": (" << position[0] << ", " << position[1] << ")";
    }
}

// mma.sync multiplies operands whose registers the layouts filled, in every type and length.
TEST(Simulated, FragmentsOfMma) {
  for (const MmaShape mma : {MmaShape{16, 16}, {16, 8}, {32, 8}, {32, 4}, {8, 32}, {8, 16}}) {
    const TileLayout acc = mmaAcc(16, 8, {}, 1), A = mmaOperand(acc, MmaOperand::A, mma.k, mma),
                     B = mmaOperand(acc, MmaOperand::B, mma.k, mma);
    const auto wordsOf = [&](const TileLayout &layout) {
      return static_cast<unsigned>(layout.numStored() * mma.bits / 32);
    };
    const char *type = mma.bits == 8 ? "s8" : mma.bits == 16 ? "bf16" : "tf32", *sum = mma.bits == 8 ? "s32" : "f32";
    const std::string body =
        moveAll("ld", "a", wordsOf(A), 0) + moveAll("ld", "b", wordsOf(B), 1) +
        "mov.b32 %d0, 0;\nmov.b32 %d1, 0;\nmov.b32 %d2, 0;\nmov.b32 %d3, 0;\n" +
        fmt::format("mma.sync.aligned.m16n8k{}.row.col.{}.{}.{}.{} {}, {}, {}, {};\n", mma.k, sum, type, type, sum,
                    listOf("d", 4), listOf("a", wordsOf(A)), listOf("b", wordsOf(B)), listOf("d", 4)) +
        moveAll("st", "d", 4, 2);
    Machine machine(kernel(3, ".reg .b32 %a<4>, %b<2>, %d<4>; .reg .b64 %x;", body));
    const uint32_t *a = machine.buffer(packed(A, mma.bits, valueA)), *b = machine.buffer(packed(B, mma.bits, valueB)),
                   *d = machine.buffer(Words(128));
    machine.run("k", {1, 1, 1}, {32, 1, 1}, {address(a), address(b), address(d)});
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    expectProduct(acc, d, mma.k, mma.bits == 8);
  }
}

/// 64 × 80 = 64 × 64 · 64 × 80 by a warpgroup: A in registers, B in shared memory with its dimension `inner`
/// contiguous.
void expectWgmma(unsigned inner) {
  const int64_t K = 64, N = 80;
  const TileLayout acc = wgmmaAcc(64, N, 4), A = mmaOperand(acc, MmaOperand::A, K, {16, 16});
  const SwizzledLayout swizzled = *swizzledLayout({K, N}, inner, 16);
  Words shared(static_cast<size_t>(swizzled.bytes() / 4));
  for (int64_t k = 0; k < K; ++k)
    for (int64_t n = 0; n < N; ++n) {
      const int64_t position[] = {k, n}, offset = swizzled.offsetOf(position);
      shared[static_cast<size_t>(offset / 2)] |= encoded(16, valueB(k, n)) << (offset % 2 * 16);
    }
  // Sixteen of K are 32 bytes of a row where K is contiguous, else 16 rows; groups of eight rows are 8 · width apart.
  const uint64_t step = inner == 0 ? 32 : 16 * swizzled.width,
                 leading = static_cast<uint64_t>(swizzled.chunkStride) * 2, stride = 8 * swizzled.width,
                 mode = swizzled.width == 128  ? 1
                        : swizzled.width == 64 ? 2
                                               : 3;
  const auto sums = static_cast<unsigned>(acc.numStored()), operands = static_cast<unsigned>(A.numStored() / 2);
  std::string body =
      fmt::format("mov.u32 %i, %t;\nC:\nmul.wide.u32 %x, %i, 4;\nadd.u64 %x, %x, %p1;\nld.global.b32 %w, [%x];\n"
                  "mov.u32 %z, pool;\nmad.lo.u32 %z, %i, 4, %z;\nst.shared.b32 [%z], %w;\nadd.u32 %i, %i, 128;\n"
                  "setp.lt.u32 %q0, %i, {};\n@%q0 bra C;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n{}",
                  shared.size(), moveAll("ld", "a", operands, 0));
  for (unsigned i = 0; i < sums; ++i)
    body += fmt::format("mov.f32 %d{}, 0f00000000;\n", i);
  body += "setp.eq.u32 %q1, 0, 0;\nwgmma.fence.sync.aligned;\n";
  for (unsigned k = 0; k < K / 16; ++k)
    body += fmt::format("mov.b64 %e{0}, {1};\nwgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 {2}, {3}, %e{0}, "
                        "%q1, 1, 1, {4};\n",
                        k, (k * step) >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | mode << 62, listOf("d", sums),
                        listOf("a", 4, 4 * k), inner == 0 ? 0 : 1);
  body += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" + moveAll("st", "d", sums, 2);
  Machine machine(
      hopperKernel(3,
                   fmt::format(".shared .align 1024 .b8 pool[{}];\n.reg .f32 %d<{}>;\n.reg .b32 %a<{}>, %i, "
                               "%w, %z;\n.reg .b64 %x, %e<4>;\n.reg .pred %q<2>;",
                               swizzled.bytes(), sums, operands),
                   body));
  const uint32_t *a = machine.buffer(packed(A, 16, valueA)), *b = machine.buffer(shared),
                 *d = machine.buffer(Words(128 * sums));
  machine.run("k", {1, 1, 1}, {128, 1, 1}, {address(a), address(b), address(d)});
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  expectProduct(acc, d, K, false);
}

// wgmma takes A from registers, B from a swizzled layout of either kind, and leaves D, with its repeats, as the layouts
// say.
TEST(Simulated, FragmentsAndSharedLayoutsOfWgmma) {
  expectWgmma(0);
  expectWgmma(1);
}

/// The words of one access, as all threads have them in registers: [thread][instruction][word].
template <class Value> Words wordsOf(const SharedAccess &access, unsigned numWarps, Value value) {
  const unsigned perWord = std::max(1u, 32 / access.bits), elements = 1u << access.element.size(),
                 matrices = 1u << access.matrix.size();
  Words words;
  for (unsigned thread = 0; thread < numWarps * numLanes; ++thread)
    for (unsigned instruction = 0; instruction < 1u << access.each.size(); ++instruction)
      for (unsigned matrix = 0; matrix < matrices; ++matrix)
        for (unsigned element = 0; element < elements; ++element) {
          if (element % perWord == 0)
            words.push_back(0);
          words.back() |= value(thread, access.registerOf(0, instruction, matrix, element))
                          << (element % perWord * access.bits);
        }
  return words;
}

/// Byte offsets in shared memory: [thread][instruction].
Words offsetsOf(const SharedAccess &access, unsigned numWarps) {
  Words words;
  for (unsigned thread = 0; thread < numWarps * numLanes; ++thread)
    for (unsigned instruction = 0; instruction < 1u << access.each.size(); ++instruction)
      words.push_back(static_cast<uint32_t>(access.offsetOf(instruction, {thread % numLanes, thread / numLanes}) *
                                            access.bits / 8));
  return words;
}

/// PTX of an access: addresses from pointer `pointer`, registers `name`.
std::string ptxText(const SharedAccess &access, bool isLoad, const std::string &name, int pointer) {
  const unsigned bytes = (access.bits << access.element.size()) / 8, instructions = 1u << access.each.size();
  const unsigned words = access.op == SharedOp::vector ? std::max(1u, bytes / 4) : 1u << access.matrix.size();
  std::string text;
  for (unsigned i = 0; i < instructions; ++i) {
    text += fmt::format("mad.wide.u32 %x, %t, {}, %p{};\nld.global.b32 %s, [%x+{}];\nadd.u32 %s, %s, %z;\n",
                        4 * instructions, pointer, 4 * i);
    const std::string list = listOf(name, words, i * words);
    const auto emit = [&](const std::string &op, const std::string &registers) {
      text += isLoad ? op + " " + registers + ", [%s];\n" : op + " [%s], " + registers + ";\n";
    };
    if (access.op != SharedOp::vector)
      emit(fmt::format("{}matrix.sync.aligned.m8n8.x{}{}.shared.b16", isLoad ? "ld" : "st", words,
                       access.op == SharedOp::columns ? ".trans" : ""),
           list);
    else if (bytes > 4)
      emit(fmt::format("{}.shared.v{}.b32", isLoad ? "ld" : "st", words), list);
    else
      emit(fmt::format("{}.shared.b{}", isLoad ? "ld" : "st", 8 * bytes), list.substr(1, list.size() - 2));
  }
  return text;
}

/// Runs a plan of one round; the values that come out, and the wavefronts of all warps, are what they should be.
void expectConverts(const TileLayout &from, const TileLayout &to, unsigned bits) {
  const SharedPlan plan = planShared(from, to, bits, {.bytes = 1 << 20, .hasLoadMatrix = true, .hasStoreMatrix = true});
  SCOPED_TRACE(from.text() + "\n-> " + to.text() + "\n" + nameOf(plan.store.op).str() + ", " +
               nameOf(plan.load.op).str() + fmt::format(", {} bits", bits));
  const auto labelsOf = [&](const TileLayout &layout) {
    return [&](unsigned thread, unsigned reg) {
      const auto position = layout.positionOf(reg, {thread % numLanes, thread / numLanes});
      return static_cast<uint32_t>(position[0] * 193 + position[1] * 7 + position[0] / 8) & ((Vec{1} << bits) - 1);
    };
  };
  const Words before = wordsOf(plan.store, 4, labelsOf(from)), want = wordsOf(plan.load, 4, labelsOf(to));
  const auto stored = static_cast<unsigned>(before.size() / 128), loaded = static_cast<unsigned>(want.size() / 128);
  const std::string text =
      hopperKernel(4,
                   fmt::format(".shared .align 1024 .b8 pool[{}];\n.reg .b32 %a<{}>, %d<{}>, %s, %z;\n.reg .b64 %x;",
                               plan.bytes, stored, loaded),
                   "mov.u32 %z, pool;\n" + moveAll("ld", "a", stored, 0) + ptxText(plan.store, false, "a", 1) +
                       "bar.sync 0;\n" + ptxText(plan.load, true, "d", 2) + moveAll("st", "d", loaded, 3));
  Machine machine(text);
  const uint32_t *places[] = {machine.buffer(before), machine.buffer(offsetsOf(plan.store, 4)),
                              machine.buffer(offsetsOf(plan.load, 4)), machine.buffer(Words(want.size()))};
  const auto program =
      simulator::buildProgram(std::make_shared<kiln::ptx::Module>(kiln::ptx::parse(text)), "k", machine.memory);
  simulator::Metrics metrics(*program);
  simulator::launch(*program, {1, 1, 1}, {128, 1, 1}, 0, reinterpret_cast<const char *>(places), machine.memory,
                    machine.findings, {}, &metrics);
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  EXPECT_EQ(Words(places[3], places[3] + want.size()), want);
  EXPECT_EQ(metrics.total().wavefronts, 4 * plan.wavefronts());
}

// Plans through shared memory are right as PTX, and take as many wavefronts as they say.
TEST(Simulated, PlansThroughSharedMemory) {
  const TileLayout acc = mmaAcc(64, 32, {2, 2}, 4), square = blocked({64, 32}, {1, 0}, {4, 4}, 4);
  const auto A = [&](MmaShape mma) { return mmaOperand(acc, MmaOperand::A, 32, mma); };
  const std::vector<TileLayout> layouts = {blocked({64, 32}, {1, 0}, {1, 8}, 4),
                                           blocked({64, 32}, {0, 1}, {8, 1}, 4),
                                           square,
                                           acc,
                                           A({16, 16}),
                                           A({8, 32}),
                                           A({32, 8})};
  for (const unsigned bits : {8, 16, 32})
    for (const TileLayout &from : layouts)
      for (const TileLayout &to : layouts)
        if (from.replicated(Hw::warp) == 0 && !(from == to)) // copies would be written twice
          expectConverts(from, to, bits);
}

// The swizzle is the one that TMA and wgmma apply.
TEST(Simulated, Swizzles) {
  for (const auto &[width, mode] : {std::pair(16, simulator::Swizzle::none),
                                    {32, simulator::Swizzle::bytes32},
                                    {64, simulator::Swizzle::bytes64},
                                    {128, simulator::Swizzle::bytes128}})
    for (uint32_t place = 0; place < 4096; ++place)
      ASSERT_EQ(swizzle(static_cast<unsigned>(width), 12)(place), simulator::swizzled(place, mode));
}

} // namespace
