// The operations that assume() records.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

void promising(View a) {
  Tile n = load(a, {0});
  assume((n > 0) & (n % 16 == 0));
  assume(n + 1 > n);
}

static size_t countOf(const std::string &word, const std::string &text) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

// Each comparison of a conjunction is recorded. For a device that checks assumptions, each becomes an assertion, and
// only remainders are used as facts.
TEST(Assume, IsCheckedWhereTheDeviceAsks) {
  const Kernel k = kernel("promising", promising);
  const std::string alone = moduleOf(k, {.args = {view(i32, {8})}}),
                    checked = moduleOf(k, {.args = {view(i32, {8})}, .checksAssumptions = true});
  EXPECT_EQ(countOf("tile.assume %", alone), 3u);
  EXPECT_EQ(countOf("tile.check", alone), 0u);
  EXPECT_EQ(countOf("tile.assume %", checked), 1u);
  EXPECT_EQ(countOf("tile.check %", checked), 2u);
  EXPECT_EQ(countOf("an assumption is false", checked), 2u);
}

} // namespace
} // namespace kiln::testing
