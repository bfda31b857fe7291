// The operations that assume() records.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

void promising(View a) { assume(a.dim(0) > 0); }

// A device that reports mistakes gets an assertion in addition.
TEST(Assume, IsCheckedWhereTheDeviceAsks) {
  const Kernel k = kernel("promising", promising);
  const std::string alone = moduleOf(k, {.args = {view(f32, {8})}}),
                    checked = moduleOf(k, {.args = {view(f32, {8})}, .checksAssumptions = true});
  EXPECT_NE(alone.find("tile.assume %"), std::string::npos);
  EXPECT_EQ(alone.find("tile.check"), std::string::npos);
  EXPECT_NE(checked.find("tile.assume %"), std::string::npos);
  EXPECT_NE(checked.find("tile.check %"), std::string::npos);
  EXPECT_NE(checked.find("an assumption is false"), std::string::npos);
}

} // namespace
} // namespace kiln::testing
