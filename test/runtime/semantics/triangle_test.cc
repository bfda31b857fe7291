// Products with triangular masks whose limits no distance reaches. product_test draws other limits.

#include "test/runtime/semantics/drawn.h"

#include <climits>

namespace {

using namespace kiln;
using namespace kiln::test;

constexpr int64_t M = 44, N = 50, K = 18;

struct MaskConfig {
  int form = 0;
};
const std::vector<Field> maskFields = {field("form", &MaskConfig::form)};

/// masked = where(mask, a · b, −1); over = P · c and turned = Pᵀ · d, where P = where(mask, a · b, 0).
void underMasks(View a, View b, View c, View d, View masked, View over, View turned, Tile limit, MaskConfig cfg) {
  Tile mask = triangle({M, N}, limit, cfg.form);
  Tile s = dot(load(a, {0, 0}, {M, K}), load(b, {0, 0}, {K, N})); // (M, N)
  store(masked, {0, 0}, where(mask, s * 2.0, -1.0));
  Tile p = where(mask, s, 0.0); // (M, N)
  p = cast(p, c.type());
  store(over, {0, 0}, dot(p, load(c, {0, 0}, {N, K})));              // (M, K)
  store(turned, {0, 0}, dot(transpose(p), load(d, {0, 0}, {M, K}))); // (N, K)
}
const Kernel underMasksKernel = kernel("under_masks", underMasks, maskFields);

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
          << what << ", element " << i << ": expected " << want[i] << ", but got " << toDouble(f32, raw[i]);
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
        const bool inside = isInTriangle({m, n}, limit, form);
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

// Limits that no distance reaches, as that of a window without an end: no position that follows from them may wrap.
TEST_P(Triangles, ALimitMayBeAnyNumber) {
  for (int form = 0; form < triangleForms; ++form) {
    const int64_t extra = form == 1 || form == 4 ? 1 : 0; // these masks add 1
    for (const int32_t limit : {INT32_MIN, INT32_MIN + 40, INT32_MAX - 40, INT32_MAX - static_cast<int32_t>(extra)})
      expectProducts(f32, form, limit);
    for (const int64_t limit : {INT64_MIN, INT64_MIN + 40, int64_t{INT32_MIN} - 1, int64_t{8}, int64_t{INT32_MAX} + 1,
                                INT64_MAX - 40, INT64_MAX - extra})
      expectProducts(f32, form, limit);
  }
}

KILN_ON_PROCESSORS(Triangles);

} // namespace
