// Plans for a target whose rows and lengths vary: few configs serve all of them. Results are right for every number of
// rows, including those for which a part of a split sum has no rows.

#include "kernels/attention.h"
#include "kernels/column_sums.h"
#include "kernels/matmul.h"
#include "test/kernels/harness.h"

#include <set>

namespace kiln {
namespace {

// The next power of two, of lengths from 16 on, of an elastic target alone.
TEST(Bucket, IsTheNextPowerOfTwo) {
  Target target = {.name = "cpu", .facts = CpuFacts{}};
  EXPECT_EQ(target.bucket(77), 77);
  EXPECT_EQ(target.lengthBucket(77), 77);
  target.elastic = true;
  for (const auto &[rows, bucket] : {std::pair<int64_t, int64_t>{0, 0}, {1, 1}, {2, 2}, {3, 4}, {64, 64}, {65, 128}})
    EXPECT_EQ(target.bucket(rows), bucket) << rows;
  for (const auto &[length, bucket] : {std::pair<int64_t, int64_t>{1, 16}, {16, 16}, {17, 32}, {48, 64}, {65, 128}})
    EXPECT_EQ(target.lengthBucket(length), bucket) << length;
  target.facts = GpuFacts{};
  EXPECT_EQ(target.lengthBucket(16), 32);
  target.minRows = 64;
  for (const auto &[rows, bucket] : {std::pair<int64_t, int64_t>{0, 0}, {1, 64}, {64, 64}, {65, 128}})
    EXPECT_EQ(target.bucket(rows), bucket) << rows;
}

/// The address of a tensor that is planned for does not matter.
TensorRef tensor(Shape extents, Type type = f32) { return TensorRef::dense(nullptr, type, std::move(extents)); }

std::vector<Target> targets() {
  return {{.name = "cpu", .facts = CpuFacts{}, .elastic = true},
          {.name = "amx", .facts = CpuFacts{.tiles = true}, .elastic = true},
          {.name = "gpu", .facts = GpuFacts{}, .elastic = true}};
}

/// The configs of the launches of a plan.
std::vector<std::string> configsOf(const Plan &plan) {
  std::vector<std::string> all;
  for (const Launch &launch : plan.launches)
    all.push_back(launch.config);
  return all;
}

// All numbers of rows of a bucket have the same launches, with the same configs, so one of them compiles the kernels of
// all.
TEST(Elastic, ABucketHasOneConfig) {
  for (const Target &target : targets())
    for (const Type type : {f32, bf16})
      for (const int64_t bucket : {32, 2048, 4096}) {
        std::set<std::vector<std::string>> forward, weights, sums;
        for (const int64_t rows : {bucket / 2 + 1, bucket - 3, bucket}) {
          ASSERT_EQ(target.bucket(rows), bucket);
          const TensorRef x = tensor({rows, 256}, type), y = tensor({rows, 96}, type);
          forward.insert(configsOf(planMatmul(target, Layout::nn, x, tensor({256, 96}, type), y)));
          weights.insert(configsOf(planWeightGradient(target, x, y, tensor({256, 96}), tensor({96}))));
          sums.insert(configsOf(planColumnSums(target, y, tensor({96}), false)));
        }
        EXPECT_EQ(forward.size(), 1u) << target.name << " " << bucket;
        EXPECT_EQ(weights.size(), 1u) << target.name << " " << bucket;
        EXPECT_EQ(sums.size(), 1u) << target.name << " " << bucket;
      }
}

// So have all pairs of lengths, for both relations of keys to queries.
TEST(Elastic, LengthsHaveOneConfig) {
  for (const Target &target : targets()) {
    std::set<std::string> configs;
    for (const auto &[Tq, Tk] : {std::pair<int64_t, int64_t>{17, 17}, {32, 18}, {20, 31}}) {
      const TensorRef q = tensor({2, 3, Tq, 16}), k = tensor({2, 3, Tk, 16});
      configs.insert(planAttention(target, q, k, k, q, tensor({2, 3, Tq}), 1, {.causal = false}).launches.at(0).config);
    }
    EXPECT_EQ(configs.size(), 1u) << target.name;
  }
}

class ElasticTest : public KernelTest {};

// A weight's gradient of few tiles is split by the bucket: for 4097 or 5121 rows in the bucket of 8192, the last parts
// have few rows or none. Integers, whose sums are exact.
TEST_P(ElasticTest, PartsWithoutRowsAddNothing) {
  Target elastic = target();
  elastic.elastic = true;
  const bool isSimulated = GetParam().device.find("cpu") == std::string::npos;
  for (const int64_t rows : {isSimulated ? 1025 : 4097, isSimulated ? 1300 : 5121}) {
    const Array x = integers({rows, 8}, type(), 2), dy = integers({rows, 24}, type(), 2);
    Array dw = unwritten({8, 24}, f32), db = unwritten({24}, f32);
    run(planWeightGradient(elastic, x, dy, dw, db.ref()));
    std::vector<double> want(8 * 24), sums(24);
    for (int64_t k = 0; k < rows; ++k)
      for (int64_t n = 0; n < 24; ++n) {
        sums[n] += dy[k * 24 + n];
        for (int64_t m = 0; m < 8; ++m)
          want[m * 24 + n] += x[k * 8 + m] * dy[k * 24 + n];
      }
    EXPECT_EQ(dw.read(), want) << rows;
    EXPECT_EQ(db.read(), sums) << rows;
  }
}
KILN_ON_PRODUCT_MACHINES(ElasticTest);

} // namespace
} // namespace kiln
