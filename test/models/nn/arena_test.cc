// The memory planner of a step: measuring lifetimes, and assigning offsets.

#include "models/nn/arena.h"
#include "test/expect_error.h"

using namespace kiln;

namespace {

int64_t offsetOf(const TensorRef &t) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data)); }

/// Two small buffers, one after the other, during the lifetime of a large one, and one more at the end.
std::vector<TensorRef> build(Arena &arena) {
  std::vector<TensorRef> all = {arena.take("large", f32, {1000}), arena.take("first", f32, {64})};
  arena.release(all[1]);
  all.push_back(arena.take("second", f32, {3}));
  arena.release(all[0]);
  all.push_back(arena.take("last", i8, {1}));
  arena.release(all[2]);
  arena.release(all[3]);
  return all;
}

// A buffer's lifetime is from its first use to the last use before its release. Buffers that are never alive together
// share bytes, so the total is the large buffer of 4096 bytes and a small one.
TEST(Arena, PlansByLifetimes) {
  Arena arena;
  build(arena);
  const ArenaPlan plan = arena.plan();
  ASSERT_EQ(plan.entries.size(), 4u);
  const std::pair<int64_t, int64_t> lives[] = {{0, 3}, {1, 2}, {2, 4}, {3, 4}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(std::pair(plan.entries[i].begin, plan.entries[i].end), lives[i]) << i;
    EXPECT_EQ(plan.entries[i].bytes, i == 0 ? 4096 : 256) << i;
    EXPECT_EQ(plan.entries[i].offset % 256, 0) << i;
  }
  EXPECT_EQ(plan.bytes, 4096 + 256);
}

// A build with the plan gets its offsets, from any base address.
TEST(Arena, GivesOutThePlannedPlaces) {
  Arena measured;
  build(measured);
  const ArenaPlan plan = measured.plan();
  for (const uintptr_t base : {uintptr_t{0}, uintptr_t{1} << 40}) {
    Arena arena(plan, reinterpret_cast<void *>(base));
    const std::vector<TensorRef> got = build(arena);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(offsetOf(got[i]), static_cast<int64_t>(base) + plan.entries[i].offset) << i;
  }
}

// A buffer that is never released shares its memory with no later buffer.
TEST(Arena, WhatIsKeptIsKeptToTheEnd) {
  Arena arena;
  arena.take("a", f32, {64});
  arena.take("b", f32, {64});
  EXPECT_EQ(arena.plan().bytes, 512);
}

TEST(Arena, AnotherBuildThanThePlannedOneIsAnError) {
  Arena measured;
  measured.take("a", f32, {64});
  const ArenaPlan plan = measured.plan();
  Arena larger(plan, nullptr), longer(plan, nullptr);
  expectError([&] { larger.take("a", f32, {65}); }, {"took buffer 0 ('a') of 512 bytes", "not the planned one"});
  longer.take("a", f32, {64});
  expectError([&] { longer.take("b", f32, {64}); }, {"took buffer 1 ('b')"});
}

TEST(Arena, ReleasingTwiceIsAnError) {
  Arena arena;
  const TensorRef a = arena.take("a", f32, {64});
  arena.release(a);
  expectError([&] { arena.release(a); }, {"not in use"});
}

} // namespace
