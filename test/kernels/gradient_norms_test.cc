// Norms of groups of a flat gradient.

#include "kernels/adamw.h"
#include "kernels/gradient_norms.h"
#include "test/kernels/harness.h"

#include <cmath>

namespace kiln {
namespace {

using GradientNormsTest = KernelTest;

Tensor list(const std::shared_ptr<Device> &device, const std::vector<int64_t> &numbers) {
  Tensor tensor(device, i64, {std::ssize(numbers)});
  tensor.upload(numbers.data(), tensor.bytes());
  return tensor;
}

// Ranges of one group need not be adjacent, and elements may belong to no group. Chunks end where ranges do, at any
// position, and a group may have several. Squares of small integers are summed exactly.
TEST_P(GradientNormsTest, AreTheirOwnElementsAlone) {
  const int64_t n = 700;
  const Array g = integers({n}, type(), 8);
  const std::vector<GroupRange> ranges = {{0, 130, 1}, {130, 131, 0}, {131, 450, 2}, {460, 700, 0}};
  const GroupChunks chunks = chunksOf(ranges, 4, 100);
  EXPECT_EQ(chunks.firsts, (std::vector<int64_t>{0, 4, 6, 10, 10}));
  std::vector<double> squares(4), want;
  for (const GroupRange &range : ranges)
    for (int64_t i = range.begin; i < range.end; ++i)
      squares[range.group] += g[i] * g[i];
  const Tensor begins = list(device, chunks.begins), ends = list(device, chunks.ends),
               firsts = list(device, chunks.firsts);
  const StepRecord host = recordOf({}, {.lossScale = 4});
  Array record = array({stepFields}, f32, {host.numbers.begin(), host.numbers.end()}), norms = unwritten({4}, f32);
  run(planGradientNorms(target(), g, begins, ends, firsts, record, norms, GradientSquaresConfig{.block = 64}));
  std::vector<Want> all;
  for (const double square : squares)
    all.push_back({std::sqrt(square) / 4, 2 * roundoff * std::sqrt(square)});
  expectClose("norms", norms, all);
}

KILN_ON_MACHINES(GradientNormsTest);

} // namespace
} // namespace kiln
