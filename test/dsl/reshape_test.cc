// Reshapes with an extent of −1.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

void openExtents(View) {
  Tile x = zeros(f32, {4, 6});
  EXPECT_EQ(reshape(x, {8, -1}).shape(), (Shape{8, 3}));
  EXPECT_EQ(reshape(x, {-1}).shape(), (Shape{24}));
  EXPECT_EQ(reshape(x, {2, -1, 12}).shape(), (Shape{2, 1, 12}));
}
TEST(Reshapes, OneExtentFollowsFromTheOthers) { EXPECT_EQ(programOf(kernel("k", openExtents), {view(f32, {64})}), ""); }

} // namespace
} // namespace kiln::testing
