// Appends new keys and values to a KV cache.

#include "kernels/cache_append.h"
#include "kernels/operands.h"
#include "kernels/rows.h"

#include <numeric>
#include <string>

namespace kiln {

/// k, v (B, H, n, D); starts (B); keys, values (B, H, T, D). cfg.rows divides n, so that only new rows are written.
static void cacheAppend(View k, View v, View starts, View keys, View values, CacheAppendConfig cfg) {
  const int64_t D = width({k, v, keys, values});
  Tile i = program_id(0) * cfg.rows, h = program_id(1), b = program_id(2);
  Tile to = cast(load(starts, {b}, {}), i64) + i;
  store(keys, {b, h, to, 0}, load(k, {b, h, i, 0}, {cfg.rows, D}));   // (rows, D)
  store(values, {b, h, to, 0}, load(v, {b, h, i, 0}, {cfg.rows, D})); // (rows, D)
}

const Kernel cacheAppendKernel =
    kernel("cache_append", cacheAppend,
           {"k (B, H, n, D)", "v (B, H, n, D) as k", "starts (B) i32, index of the first new position",
            "keys (B, H, T, D) as k", "values (B, H, T, D) as k"},
           {field("rows", &CacheAppendConfig::rows, "positions that a program copies; divides n")});

Plan planCacheAppend(const Target &, const TensorRef &k, const TensorRef &v, const TensorRef &starts,
                     const TensorRef &keys, const TensorRef &values, const std::optional<CacheAppendConfig> &config) {
  checkOperands(cacheAppendKernel, {k, v, starts, keys, values});
  const int64_t B = k.extents[0], H = k.extents[1], n = k.extents[2];
  const CacheAppendConfig chosen = config.value_or(CacheAppendConfig{static_cast<int>(std::gcd(n, 16))});
  if (chosen.rows < 1 || n % chosen.rows != 0)
    throw Error("'cache_append': expected 'rows' to divide " + std::to_string(n) + " new positions, but got " +
                std::to_string(chosen.rows));
  return {.launches = {
              makeLaunch(cacheAppendKernel, chosen, programs(n / chosen.rows, H, B), {k, v, starts, keys, values})}};
}

} // namespace kiln
