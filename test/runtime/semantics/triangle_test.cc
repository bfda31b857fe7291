// Products with triangular masks: a target may omit elements that are known to be zero or are never read, and no
// others.

#include "test/runtime/semantics/semantics.h"

#include <climits>
#include <cmath>

namespace {

using namespace kiln;
using namespace kiln::test;

constexpr int64_t M = 44, N = 50, K = 18;

/// The ways to write one mask: column − row ≤ limit (0 to 2), and row − column ≤ limit (3 and 4). The limit is i32 or
/// i64.
struct MaskConfig {
  int form = 0;
};
const std::vector<Field> maskFields = {field("form", &MaskConfig::form)};

Tile maskOf(Tile limit, MaskConfig cfg) {
  Tile row = unsqueeze(iota(M), -1), column = unsqueeze(iota(N), 0); // (M, 1), (1, N)
  Tile distance = cast(cfg.form < 3 ? column - row : row - column, limit.type());
  switch (cfg.form) {
  case 1:
    return distance < limit + 1;
  case 2:
    return limit >= distance;
  case 4:
    return (limit + 1 > distance) & (column >= 0);
  default:
    return distance <= limit;
  }
}

bool isInside(int64_t row, int64_t column, int64_t limit, int form) {
  return form < 3 ? column - row <= limit : row - column <= limit;
}

/// masked = where(mask, a · b, −1); over = P · c and turned = Pᵀ · d, where P = where(mask, a · b, 0).
void underMasks(View a, View b, View c, View d, View masked, View over, View turned, Tile limit, MaskConfig cfg) {
  Tile mask = maskOf(limit, cfg);
  Tile s = dot(load(a, {0, 0}, {M, K}), load(b, {0, 0}, {K, N})); // (M, N)
  store(masked, {0, 0}, where(mask, s * 2.0, -1.0));
  Tile p = where(mask, s, 0.0); // (M, N)
  p = cast(p, c.type());
  store(over, {0, 0}, dot(p, load(c, {0, 0}, {N, K})));              // (M, K)
  store(turned, {0, 0}, dot(transpose(p), load(d, {0, 0}, {M, K}))); // (N, K)
}
const Kernel underMasksKernel = kernel("under_masks", underMasks, maskFields);

/// Both halves are read: one under the mask, one without it.
void withAndWithout(View a, View b, View masked, View all, Tile limit, MaskConfig cfg) {
  Tile s = dot(load(a, {0, 0}, {M, K}), load(b, {0, 0}, {K, N})); // (M, N)
  store(masked, {0, 0}, where(maskOf(limit, cfg), s, -1.0));
  store(all, {0, 0}, where(maskOf(limit, cfg), 1.0, s));
}
const Kernel withAndWithoutKernel = kernel("with_and_without", withAndWithout, maskFields);

/// Nothing but the masked store reads the product.
void onlyMasked(View a, View b, View masked, Tile limit, MaskConfig) {
  Tile s = dot(load(a, {0, 0}, {M, K}), load(b, {0, 0}, {K, 64})); // (M, 64)
  Tile row = unsqueeze(iota(M), -1), column = unsqueeze(iota(64), 0);
  store(masked, {0, 0}, where(column - row <= limit, s, -1.0));
}
const Kernel onlyMaskedKernel = kernel("only_masked", onlyMasked, maskFields);

/// Rows of numbers under a mask: stored, summed, and their maximum, with another mask, too.
void rowsUnderMasks(View x, View stored, View sums, View largest, Tile limit, MaskConfig cfg) {
  Tile mask = maskOf(limit, cfg);
  Tile numbers = load(x, {0, 0}, {M, N}); // (M, N)
  Tile kept = where(mask, numbers, -2.0);
  store(stored, {0, 0}, where(mask & (numbers > 0.0), kept + 1.0, numbers));
  store(sums, {0}, sum(where(mask, numbers, 0.5)));
  store(largest, {0}, reduce_max(kept));
}
const Kernel rowsUnderMasksKernel = kernel("rows_under_masks", rowsUnderMasks, maskFields);

class Triangles : public Semantics {
protected:
  /// Small whole numbers, whose sums of products are exact.
  std::vector<double> numbers(int64_t count, int64_t step) {
    std::vector<double> values(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = static_cast<double>(i * step % 7 - 3);
    return values;
  }
  Tensor floats(Shape shape, const std::vector<double> &values, Type type = f32) {
    Raw raw;
    for (double value : values)
      raw.push_back(rawOfReal(type, value));
    return tensor(type, shape, raw);
  }
  void expectEqual(const Tensor &got, const std::vector<double> &want, const std::string &what) {
    const Raw raw = read(got);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_TRUE(same(f32, raw[i], rawOfReal(f32, want[i]), false))
          << what << ", element " << i << ": expected " << want[i] << ", but got " << realOf(f32, raw[i]);
  }
  /// Launches underMasks with a limit of i32 or i64 and compares the stored results.
  template <class Limit> void expectProducts(Type type, int form, Limit limit) {
    const Tensor left = floats({M, K}, a, type), right = floats({K, N}, b, type), below = floats({N, K}, c, type),
                 beside = floats({M, K}, d, type);
    const Tensor masked = floats({M, N}, std::vector<double>(M * N)), over = floats({M, K}, std::vector<double>(M * K)),
                 turned = floats({N, K}, std::vector<double>(N * K));
    launch(underMasksKernel,
           {left.ref(), right.ref(), below.ref(), beside.ref(), masked.ref(), over.ref(), turned.ref(), limit},
           "form=" + std::to_string(form));
    std::vector<double> wantMasked, wantOver(M * K), wantTurned(N * K);
    for (int64_t m = 0; m < M; ++m)
      for (int64_t n = 0; n < N; ++n) {
        const bool inside = isInside(m, n, limit, form);
        const double s = product(m, n), p = inside ? s : 0;
        wantMasked.push_back(inside ? 2 * s : -1);
        for (int64_t k = 0; k < K; ++k) {
          wantOver[m * K + k] += p * c[n * K + k];
          wantTurned[n * K + k] += p * d[m * K + k];
        }
      }
    const std::string where =
        std::string(nameOf(type)) + ", form " + std::to_string(form) + ", limit " + std::to_string(limit);
    expectEqual(masked, wantMasked, "masked, " + where);
    expectEqual(over, wantOver, "over, " + where);
    expectEqual(turned, wantTurned, "turned, " + where);
  }
  const std::vector<double> a = numbers(M * K, 5), b = numbers(K * N, 3), c = numbers(N * K, 2), d = numbers(M * K, 4);
  double product(int64_t m, int64_t n) const {
    double sum = 0;
    for (int64_t k = 0; k < K; ++k)
      sum += a[m * K + k] * b[k * N + n];
    return sum;
  }
};

// In bf16 too, which represents all accumulators of the first product.
TEST_P(Triangles, ProductsUnderAMaskAreThoseOfTheWholeTile) {
  for (const Type type : {f32, bf16})
    for (int form = 0; form < 5; ++form)
      for (const int limit : {-100, -50, -42, -9, -1, 0, 1, 8, 31, 48, 200})
        expectProducts(type, form, limit);
}

// Limits that no distance reaches, as that of a window without an end: no position that follows from them may wrap.
TEST_P(Triangles, ALimitMayBeAnyNumber) {
  for (int form = 0; form < 5; ++form) {
    const int64_t extra = form == 1 || form == 4 ? 1 : 0; // these masks add 1
    for (const int32_t limit : {INT32_MIN, INT32_MIN + 40, INT32_MAX - 40, INT32_MAX - static_cast<int32_t>(extra)})
      expectProducts(f32, form, limit);
    for (const int64_t limit : {INT64_MIN, INT64_MIN + 40, int64_t{INT32_MIN} - 1, int64_t{8}, int64_t{INT32_MAX} + 1,
                                INT64_MAX - 40, INT64_MAX - extra})
      expectProducts(f32, form, limit);
  }
}

TEST_P(Triangles, AProductThatIsAlsoReadOutsideTheMaskIsWhole) {
  const Tensor left = floats({M, K}, a), right = floats({K, N}, b);
  for (int form = 0; form < 5; ++form)
    for (const int limit : {-9, 0, 31}) {
      const Tensor masked = floats({M, N}, std::vector<double>(M * N)),
                   all = floats({M, N}, std::vector<double>(M * N));
      launch(withAndWithoutKernel, {left.ref(), right.ref(), masked.ref(), all.ref(), limit},
             "form=" + std::to_string(form));
      std::vector<double> wantMasked, wantAll;
      for (int64_t m = 0; m < M; ++m)
        for (int64_t n = 0; n < N; ++n) {
          wantMasked.push_back(isInside(m, n, limit, form) ? product(m, n) : -1);
          wantAll.push_back(isInside(m, n, limit, form) ? 1 : product(m, n));
        }
      expectEqual(masked, wantMasked, "masked");
      expectEqual(all, wantAll, "all");
    }
}

TEST_P(Triangles, AStoreUnderAMaskWritesTheWholeTile) {
  const Tensor left = floats({M, K}, a), right = floats({K, N}, b);
  for (const int limit : {-50, -9, 0, 31}) {
    const Tensor masked = floats({M, N}, std::vector<double>(M * N));
    launch(onlyMaskedKernel, {left.ref(), right.ref(), masked.ref(), limit}, "form=0");
    std::vector<double> want;
    for (int64_t m = 0; m < M; ++m)
      for (int64_t n = 0; n < N; ++n)
        want.push_back(isInside(m, n, limit, 0) ? product(m, n) : -1);
    expectEqual(masked, want, "limit " + std::to_string(limit));
  }
}

TEST_P(Triangles, RowsUnderAMaskAreThoseOfTheWholeTile) {
  const std::vector<double> x = numbers(M * N, 5);
  const Tensor source = floats({M, N}, x);
  for (int form = 0; form < 5; ++form)
    for (const int limit : {INT_MIN, -100, -43, -42, -9, -1, 0, 1, 8, 31, 48, 49, 200, INT_MAX}) {
      if (limit == INT_MAX && form != 0 && form != 2 && form != 3) // limit + 1 is no limit any more
        continue;
      const Tensor stored = floats({M, N}, std::vector<double>(M * N)), sums = floats({M}, std::vector<double>(M)),
                   largest = floats({M}, std::vector<double>(M));
      launch(rowsUnderMasksKernel, {source.ref(), stored.ref(), sums.ref(), largest.ref(), limit},
             "form=" + std::to_string(form));
      std::vector<double> wantStored, wantSums(M), wantLargest(M, -INFINITY);
      for (int64_t m = 0; m < M; ++m)
        for (int64_t n = 0; n < N; ++n) {
          const bool inside = isInside(m, n, limit, form);
          const double number = x[m * N + n];
          wantStored.push_back(inside && number > 0 ? number + 1 : number);
          wantSums[m] += inside ? number : 0.5;
          wantLargest[m] = std::max(wantLargest[m], inside ? number : -2);
        }
      const std::string where = "form " + std::to_string(form) + ", limit " + std::to_string(limit);
      expectEqual(stored, wantStored, "stored, " + where);
      expectEqual(sums, wantSums, "sums, " + where);
      expectEqual(largest, wantLargest, "largest, " + where);
    }
}

KILN_ON_PROCESSORS(Triangles);

} // namespace
