// Keys and values of new positions join a cache.

#include "kernels/cache_append.h"
#include "test/expect_error.h"
#include "test/kernels/harness.h"

namespace kiln {
namespace {

class CacheAppendTest : public KernelTest {};

// New positions are written where each sequence's start says, from packed heads, for any number; other positions are
// unchanged.
TEST_P(CacheAppendTest, PutsPlacesBehindThoseThereAre) {
  const int64_t B = 3, H = 2, T = 20, D = 5;
  for (const int64_t n : {1, 3, 16}) {
    const Array qkv = uniform({B, n, 3, H, D}, type());
    Array keys = uniform({B, H, T, D}, type()), values = uniform({B, H, T, D}, type());
    const std::vector<double> starts = {0, 4, 20}; // the last has no room
    const auto part = [&](int which) { return qkv.ref().select(2, which).permute({0, 2, 1, 3}); };
    run(planCacheAppend(target(), part(1), part(2), array({B}, i32, starts), keys, values));
    const auto want = [&](const Array &before, int which) {
      std::vector<double> all = before.values;
      for (int64_t b = 0; b < B; ++b)
        for (int64_t i = 0; i < n && starts[b] + i < T; ++i)
          for (int64_t h = 0; h < H; ++h)
            for (int64_t d = 0; d < D; ++d)
              all[((b * H + h) * T + static_cast<int64_t>(starts[b]) + i) * D + d] =
                  qkv[(((b * n + i) * 3 + which) * H + h) * D + d];
      return all;
    };
    expectEqual("keys", keys.read(), want(keys, 1));
    expectEqual("values", values.read(), want(values, 2));
  }
}
KILN_ON_MACHINES(CacheAppendTest);

TEST(CacheAppend, NamesWhatDoesNotFit) {
  const Target target = Device::open("cpu")->target();
  const auto tensor = [](Type type, Shape extents) { return TensorRef::dense(nullptr, type, std::move(extents)); };
  const TensorRef k = tensor(f32, {2, 3, 4, 8}), cache = tensor(f32, {2, 3, 9, 8}), starts = tensor(i32, {2});
  expectError([&] { planCacheAppend(target, k, k, starts, cache, tensor(f32, {2, 3, 8, 8})); },
              {"'cache_append': expected 'values' of shape 2x3x9x8, but got 2x3x8x8"});
  expectError([&] { planCacheAppend(target, k, k, starts, cache, cache, CacheAppendConfig{3}); },
              {"'cache_append': expected 'rows' to divide 4 new positions, but got 3"});
}

} // namespace
} // namespace kiln
