// Products of tiles that hang over their views: what lies outside counts as zero, whatever else is known of the views.

#include "test/runtime/semantics/semantics.h"

#include <fmt/format.h>

namespace {

using namespace kiln;
using namespace kiln::test;

constexpr int64_t TM = 24, TN = 80, TK = 24; // the tiles
constexpr int64_t M = 19, N = 53, K = 21;    // the matrices

struct HangingConfig {
  bool ta = false, tb = false; // a is stored as (K, M), b as (N, K)
  bool known = false;          // the views' extents are known while compiling
  bool fixed = false;          // the corner is known while compiling: (3, 7, 2)
  bool total = false;          // only the sums of the product's rows are looked at
};
const std::vector<Field> hangingFields = {field("ta", &HangingConfig::ta), field("tb", &HangingConfig::tb),
                                          field("known", &HangingConfig::known), field("fixed", &HangingConfig::fixed),
                                          field("total", &HangingConfig::total)};

/// c = a · b from row m, column n and term k on; with `total` its first column is that of the sums of rows.
void hanging(View a, View b, View c, Tile m, Tile n, Tile k, HangingConfig cfg) {
  if (cfg.known)
    for (int axis : {0, 1})
      (void)(a.extent(axis) + b.extent(axis));
  if (cfg.fixed) {
    m = full(i64, {}, 3);
    n = full(i64, {}, 7);
    k = full(i64, {}, 2);
  }
  Tile left = cfg.ta ? transpose(load(a, {k, m}, {TK, TM})) : load(a, {m, k}, {TM, TK});  // (TM, TK)
  Tile right = cfg.tb ? transpose(load(b, {n, k}, {TN, TK})) : load(b, {k, n}, {TK, TN}); // (TK, TN)
  Tile product = dot(left, right);                                                        // (TM, TN)
  store(c, {0, 0}, cfg.total ? expand(sum(product), -1) : product);
}
const Kernel hangingKernel = kernel("hanging", hanging, hangingFields);

class Products : public Semantics {
protected:
  /// Small whole numbers, whose sums of products are exact, by rows or, `turned`, by columns.
  Tensor matrix(int64_t rows, int64_t columns, bool turned, int (*element)(int64_t, int64_t)) {
    Raw raw;
    for (int64_t i = 0; i < rows * columns; ++i)
      raw.push_back(rawOfReal(f32, turned ? element(i % rows, i / rows) : element(i / columns, i % columns)));
    return tensor(f32, turned ? Shape{columns, rows} : Shape{rows, columns}, raw);
  }
};

int leftAt(int64_t m, int64_t k) {
  return m < 0 || m >= M || k < 0 || k >= K ? 0 : static_cast<int>((m * 3 + k * 5) % 11) - 5;
}
int rightAt(int64_t k, int64_t n) {
  return k < 0 || k >= K || n < 0 || n >= N ? 0 : static_cast<int>((k * 7 + n * 2) % 13) - 6;
}

TEST_P(Products, OfTilesThatHangOverTheirViewsAreZeroOutside) {
  const int64_t corners[][3] = {{0, 0, 0},  {3, 7, 2},  {-3, 0, 0}, {0, -5, 0},
                                {0, 0, -2}, {0, 60, 0}, {60, 0, 0}, {0, 0, 30}};
  for (int bits = 0; bits < 32; ++bits) {
    const bool ta = bits & 1, tb = bits & 2, known = bits & 4, total = bits & 8, fixed = bits & 16;
    const std::string config =
        fmt::format("ta={:d},tb={:d},known={:d},total={:d},fixed={:d}", ta, tb, known, total, fixed);
    const Tensor a = matrix(M, K, ta, leftAt), b = matrix(K, N, tb, rightAt);
    for (const auto &[m, n, k] : corners) {
      if (fixed && (m != 3 || n != 7 || k != 2))
        continue;
      const Tensor c = tensor(f32, {TM, TN}, Raw(TM * TN, rawOfReal(f32, 7)));
      launch(hangingKernel, {a.ref(), b.ref(), c.ref(), m, n, k}, config);
      const Raw got = read(c);
      for (int64_t i = 0; i < TM; ++i) {
        int sum = 0;
        for (int64_t j = 0; j < TN; ++j) {
          int want = 0;
          for (int64_t s = 0; s < TK; ++s)
            want += leftAt(m + i, k + s) * rightAt(k + s, n + j);
          sum += want;
          if (!total)
            ASSERT_TRUE(same(f32, got[i * TN + j], rawOfReal(f32, want), false))
                << config << " from " << m << ", " << n << ", " << k << ", at " << i << ", " << j << ": expected "
                << want << ", but got " << realOf(f32, got[i * TN + j]);
        }
        if (total)
          ASSERT_TRUE(same(f32, got[i * TN], rawOfReal(f32, sum), false))
              << config << " from " << m << ", " << n << ", " << k << ", row " << i << ": expected " << sum
              << ", but got " << realOf(f32, got[i * TN]);
      }
    }
  }
}

KILN_ON_EVERY_DEVICE(Products);

} // namespace
