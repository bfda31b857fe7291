// Conversions through shared memory, executed at the instructions' meaning on labelled values: each element's label is
// its position. Wavefronts are counted again here, for all instructions of all warps.

#include "dialect/simt/layout/Blocked.h"
#include "dialect/simt/layout/Convert.h"
#include "dialect/simt/layout/Fragments.h"
#include "test/dialect/simt/layout/Random.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

using namespace kiln::simt;
using kiln::simt::test::Random;

namespace {

constexpr unsigned numWarps = 4;
const SharedLimits ample = {.bytes = 1 << 20, .hasLoadMatrix = true, .hasStoreMatrix = true};

/// A core position, or -1: nothing.
using Label = int64_t;
using Registers = std::vector<Label>; // of all threads: [warp][lane][register]

Registers registersOf(const TileLayout &layout) {
  const F2Map core = layout.core();
  Registers labels;
  for (unsigned warp = 0; warp < layout.numWarps(); ++warp)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (unsigned reg = 0; reg < 1u << layout.regBits(); ++reg)
        labels.push_back(
            static_cast<Label>(core(reg | Vec{lane} << layout.regBits() | Vec{warp} << (layout.regBits() + laneBits))));
  return labels;
}

/// Executes one round's stores, or loads: calls move(place of a value in registers, place in memory) for each element.
template <class Move> void execute(const SharedAccess &access, unsigned round, size_t registers, Move move) {
  const unsigned perWord = 1u << access.element.size();
  for (unsigned warp = 0; warp < numWarps; ++warp)
    for (unsigned instruction = 0; instruction < 1u << access.each.size(); ++instruction)
      for (unsigned lane = 0; lane < numLanes; ++lane)
        for (unsigned matrix = 0; matrix < 1u << access.matrix.size(); ++matrix)
          for (unsigned element = 0; element < perWord; ++element) {
            const size_t value =
                (size_t{warp} * numLanes + lane) * registers + access.registerOf(round, instruction, matrix, element);
            unsigned giver = lane; // of the address
            Vec within = element;  // the row, or the vector
            if (access.op == SharedOp::rows) {
              giver = 8 * matrix + lane / 4;
              within = lane % 4 * perWord + element;
            } else if (access.op == SharedOp::columns) {
              giver = 8 * matrix + 2 * (lane % 4) + element;
              within = lane / 4;
            }
            move(value, access.offsetOf(instruction, {giver, warp}) + within);
          }
}

void expectConverts(const SharedPlan &plan, const TileLayout &from, const TileLayout &to, unsigned bits) {
  SCOPED_TRACE(from.text() + "\n-> " + to.text() + "\n" + nameOf(plan.store.op).str() + ", " +
               nameOf(plan.load.op).str());
  const Registers source = registersOf(from), want = registersOf(to);
  Registers got(want.size(), -1);
  for (unsigned round = 0; round < 1u << plan.rounds.size(); ++round) {
    std::vector<Label> memory(static_cast<size_t>(plan.bytes * 8 / bits), -1);
    execute(plan.store, round, size_t{1} << from.regBits(), [&](size_t value, Vec place) {
      ASSERT_LT(place, memory.size());
      ASSERT_TRUE(memory[place] == -1 || memory[place] == source[value]); // copies may write the same
      memory[place] = source[value];
    });
    execute(plan.load, round, size_t{1} << to.regBits(), [&](size_t value, Vec place) {
      ASSERT_LT(place, memory.size());
      got[value] = memory[place];
    });
  }
  ASSERT_EQ(got, want);
}

struct Count {
  unsigned wavefronts = 0, ideal = 0;
};

/// Wavefronts of one warp over all rounds, and how few the words of each phase allow in 32 banks.
Count countOf(const SharedAccess &access, unsigned warp) {
  Count count;
  const bool isMatrix = access.op != SharedOp::vector;
  const unsigned bytes = isMatrix ? 16 : (access.bits << access.element.size()) / 8;
  const unsigned lanes = isMatrix ? 8u << access.matrix.size() : numLanes;
  const unsigned phase = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
  for (unsigned instruction = 0; instruction < 1u << access.each.size(); ++instruction)
    for (unsigned begin = 0; begin < lanes; begin += phase) {
      std::map<Vec, std::set<Vec>> wordsOfBank;
      std::set<Vec> words;
      for (unsigned lane = begin; lane < begin + phase; ++lane) {
        const Vec address = access.offsetOf(instruction, {lane, warp}) * access.bits / 8;
        EXPECT_EQ(address % bytes, 0u);
        for (Vec byte = address; byte < address + bytes; ++byte) {
          words.insert(byte / 4);
          wordsOfBank[byte / 4 % 32].insert(byte / 4);
        }
      }
      size_t most = 0;
      for (const auto &[bank, in] : wordsOfBank)
        most = std::max(most, in.size());
      count.wavefronts += static_cast<unsigned>(most) << access.round.size();
      count.ideal += static_cast<unsigned>(words.size() + 31) / 32 << access.round.size();
    }
  return count;
}

TileLayout transposed(const TileLayout &layout) { return layout.transpose({1, 0}); }

/// 17 layouts of 128 × 64 elements that kernels have.
std::vector<TileLayout> typicalLayouts() {
  const llvm::SmallVector<int64_t> sizes = {128, 64};
  const auto rows = [&](int64_t vector) { return blocked(sizes, {1, 0}, {1, vector}, numWarps); };
  const auto columns = [&](int64_t vector) { return blocked(sizes, {0, 1}, {vector, 1}, numWarps); };
  const TileLayout acc = mmaAcc(128, 64, {4, 1}, numWarps), square = mmaAcc(128, 64, {2, 2}, numWarps);
  const auto A = [&](MmaShape mma) { return mmaOperand(acc, MmaOperand::A, 64, mma); };
  const auto B = [&](WarpSplit split, MmaShape mma) {
    return mmaOperand(mmaAcc(128, 64, split, numWarps), MmaOperand::B, 128, mma);
  };
  const auto replicated = TileLayout::parse("128x64, reg [d1:1 d1:2 d1:4 d0:4 d0:8 d0:16 d0:32 d0:64], "
                                            "lane [d1:8 d1:16 d1:32 * *], warp [d0:1 d0:2]",
                                            [](const llvm::Twine &reason) { ADD_FAILURE() << reason.str(); });
  return {rows(8),
          rows(4),
          rows(1),
          columns(8),
          columns(1),
          blocked(sizes, {1, 0}, {4, 4}, numWarps),
          acc,
          square,
          transposed(mmaAcc(64, 128, {2, 2}, numWarps)),
          A({16, 16}),
          B({4, 1}, {16, 16}),
          B({1, 4}, {16, 16}),
          A({32, 8}),
          A({8, 32}),
          B({4, 1}, {8, 32}),
          wgmmaAcc(128, 64, numWarps),
          *replicated};
}

// Every plan puts each element where the destination wants it, within its memory, in elements of any size.
TEST(SharedPlan, PlansConvert) {
  Random random(1);
  std::set<SharedOp> stores, loads;
  for (unsigned round = 0; round < 400 && !HasFailure(); ++round) {
    const auto sizes = random.sizes();
    const TileLayout from = random.layout(sizes, numWarps), to = random.layout(sizes, numWarps);
    const unsigned bits = 8u << random.below(4);
    const SharedLimits limits = {
        .bytes = int64_t{1} << random.below(16), .hasLoadMatrix = true, .hasStoreMatrix = true};
    const SharedPlan plan = planShared(from, to, bits, limits);
    expectConverts(plan, from, to, bits);
    stores.insert(plan.store.op);
    loads.insert(plan.load.op);
  }
  EXPECT_EQ(stores.size(), 3u);
  EXPECT_EQ(loads.size(), 3u);
}

// Between layouts that kernels have, stores and loads take just as many wavefronts as their words need, with and
// without matrix instructions.
TEST(SharedPlan, TypicalLayoutsDoNotConflict) {
  const std::vector<TileLayout> layouts = typicalLayouts();
  for (const unsigned bits : {8, 16, 32, 64})
    for (const bool hasMatrix : {true, false})
      for (const TileLayout &from : layouts)
        for (const TileLayout &to : layouts) {
          const SharedPlan plan = planShared(from, to, bits, {1 << 20, hasMatrix, hasMatrix});
          for (const SharedAccess *access : {&plan.store, &plan.load}) {
            const Count count = countOf(*access, 0);
            ASSERT_EQ(count.wavefronts, count.ideal) << from.text() << "\n-> " << to.text() << "\nof " << bits;
          }
        }
}

// wavefronts() is computed from one instruction, and is right for every instruction of every warp.
TEST(SharedPlan, WavefrontsAreThoseOfEveryInstruction) {
  Random random(2);
  for (unsigned round = 0; round < 300; ++round) {
    const auto sizes = random.sizes();
    const TileLayout from = random.layout(sizes, numWarps), to = random.layout(sizes, numWarps);
    const SharedPlan plan = planShared(from, to, 8u << random.below(4), ample);
    for (const SharedAccess *access : {&plan.store, &plan.load})
      for (unsigned warp = 0; warp < numWarps; ++warp)
        ASSERT_EQ(access->wavefronts(), countOf(*access, warp).wavefronts) << from.text() << "\n-> " << to.text();
  }
}

// Plans for 128 × 64 elements and four warps, by the instructions and the wavefronts of all warps: 16384 bytes of
// 16-bit elements are 128 each way.
TEST(SharedPlan, KnownPlans) {
  const std::vector<TileLayout> layouts = typicalLayouts();
  const TileLayout &rows = layouts[0], &columns = layouts[3], &acc = layouts[6], &A = layouts[9];
  const auto expect = [](const SharedPlan &plan, SharedOp store, SharedOp load, unsigned wavefronts) {
    EXPECT_EQ(nameOf(plan.store.op), nameOf(store));
    EXPECT_EQ(nameOf(plan.load.op), nameOf(load));
    EXPECT_EQ(numWarps * plan.store.wavefronts(), wavefronts);
    EXPECT_EQ(numWarps * plan.load.wavefronts(), wavefronts);
  };
  const SharedLimits ampere = {.bytes = 1 << 20}, bare = {.bytes = 1 << 20, .hasLoadMatrix = false};
  expect(planShared(rows, columns, 16, ampere), SharedOp::vector, SharedOp::columns, 128);
  expect(planShared(acc, rows, 16, ampere), SharedOp::vector, SharedOp::rows, 128);
  expect(planShared(rows, A, 16, ampere), SharedOp::vector, SharedOp::rows, 128);
  expect(planShared(rows, A, 16, bare), SharedOp::vector, SharedOp::vector, 128);
  expect(planShared(rows, columns, 32, bare), SharedOp::vector, SharedOp::vector, 256);
  const TileLayout bytes = blocked({128, 64}, {1, 0}, {1, 16}, numWarps);
  expect(planShared(bytes, layouts[13], 8, ampere), SharedOp::vector, SharedOp::rows, 64);
}

// Rounds are as few as fit; without any memory, every unit counts rounds that both sides have in registers.
TEST(SharedPlan, RoundsFitTheMemory) {
  Random random(3);
  for (unsigned round = 0; round < 300; ++round) {
    const auto sizes = random.sizes();
    const TileLayout from = random.layout(sizes, numWarps), to = random.layout(sizes, numWarps);
    const int64_t whole = int64_t{4} << from.shape().coreBits();
    const auto isCommon = [&](Vec unit) { return llvm::is_contained(from.bases(Hw::reg), unit); };
    for (const int64_t limit : {int64_t{1} << 20, int64_t{2048}, int64_t{0}}) {
      const SharedPlan plan = planShared(from, to, 32, {limit, true, true});
      EXPECT_EQ(plan.bytes << plan.rounds.size(), whole);
      EXPECT_FALSE(!plan.rounds.empty() && 2 * plan.bytes <= limit) << plan.bytes;
      EXPECT_TRUE(llvm::all_of(plan.rounds, isCommon));
      if (limit == 0) {
        EXPECT_EQ(static_cast<std::ptrdiff_t>(plan.rounds.size()), llvm::count_if(to.bases(Hw::reg), isCommon));
      }
    }
  }
}

// Each block of a cluster has memory for its own part.
TEST(SharedPlan, BlocksKeepTheirParts) {
  const auto clustered = [](const std::string &reg, const std::string &lane) {
    return *TileLayout::parse("16x32, reg [" + reg + "], lane [" + lane + "], warp [d0:4 d1:16], block [d0:8]",
                              [](const llvm::Twine &reason) { ADD_FAILURE() << reason.str(); });
  };
  const TileLayout from = clustered("d1:1", "d1:2 d1:4 d1:8 d0:1 d0:2"),
                   to = clustered("d0:1", "d0:2 d1:1 d1:2 d1:4 d1:8");
  const SharedPlan plan = planShared(from, to, 32, ample);
  EXPECT_EQ(plan.bytes, 8 * 32 * 4);
  expectConverts(plan, from, to, 32);
}

// A barrier of the warp suffices just when no warp reads what another wrote.
TEST(SharedPlan, WarpsThatReadTheirOwn) {
  const auto own = [](const TileLayout &from, const TileLayout &to) {
    return planShared(from, to, 16, ample).isWithinWarps;
  };
  const TileLayout acc = mmaAcc(64, 64, {4, 1}, numWarps);
  EXPECT_TRUE(own(acc, mmaOperand(acc, MmaOperand::A, 64, {8, 32})));
  EXPECT_FALSE(own(acc, blocked({64, 64}, {1, 0}, {1, 8}, numWarps)));
  const TileLayout B = mmaOperand(acc, MmaOperand::B, 64, {16, 16}); // every warp has all of it
  EXPECT_FALSE(own(B, mmaOperand(acc, MmaOperand::B, 64, {8, 32})));
}

} // namespace
