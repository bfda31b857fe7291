// The memory planner.

#include "models/nn/arena.h"
#include "test/expect_error.h"

using namespace kiln;

namespace {

int64_t offsetOf(const TensorRef &t) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data)); }

// Buffers in use at one time do not overlap and begin at multiples of 256 bytes.
TEST(Arena, LiveBuffersAreApart) {
  Arena arena;
  const TensorRef a = arena.take("a", f32, {3}), b = arena.take("b", f32, {100}), c = arena.take("c", i8, {1});
  EXPECT_EQ(offsetOf(a), 0);
  EXPECT_EQ(offsetOf(b), 256);
  EXPECT_EQ(offsetOf(c), 256 + 512);
  EXPECT_EQ(arena.peak(), 1024);
}

// A released place is used again where the new buffer fits, and passed over where it does not.
TEST(Arena, ReusesReleasedPlaces) {
  Arena arena;
  const TensorRef a = arena.take("a", f32, {64}), b = arena.take("b", f32, {64});
  arena.release(a);
  const TensorRef large = arena.take("large", f32, {65});
  EXPECT_EQ(offsetOf(large), 512);
  const TensorRef small = arena.take("small", f32, {64});
  EXPECT_EQ(offsetOf(small), 0);
  EXPECT_EQ(offsetOf(b), 256);
}

// The same takes over another address give the same offsets: the plan that was measured is the plan that runs.
TEST(Arena, OffsetsDoNotDependOnTheAddress) {
  Arena zero, high(reinterpret_cast<void *>(uintptr_t{1} << 40));
  for (Arena *arena : {&zero, &high}) {
    const TensorRef a = arena->take("a", f32, {64});
    arena->take("b", f32, {200});
    arena->release(a);
    arena->take("c", f32, {10});
  }
  ASSERT_EQ(zero.entries().size(), high.entries().size());
  for (size_t i = 0; i < zero.entries().size(); ++i)
    EXPECT_EQ(zero.entries()[i].offset, high.entries()[i].offset);
}

TEST(Arena, ReleasingTwiceIsAnError) {
  Arena arena;
  const TensorRef a = arena.take("a", f32, {64});
  arena.release(a);
  expectError([&] { arena.release(a); }, {"not in use"});
}

} // namespace
