// Products of floats of 8 bits: exact where numbers are small and whole, and else within the bounds of
// dialect/README.md.

#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <fmt/format.h>

namespace {

using namespace kiln;
using namespace kiln::test;

constexpr double roundoff = 0x1p-24;

class NarrowProducts : public Semantics {
protected:
  bool isGpu() const { return GetParam().rfind("cpu", 0) != 0; }

  /// Calls element(i, j) for a matrix of `rows`, stored by rows or, `turned`, by columns.
  template <class F> Tensor matrix(Type type, int64_t rows, int64_t columns, bool turned, F element) {
    Raw raw;
    for (int64_t i = 0; i < rows * columns; ++i)
      raw.push_back(turned ? element(i % rows, i / rows) : element(i / columns, i % columns));
    return tensor(type, turned ? Shape{columns, rows} : Shape{rows, columns}, raw);
  }
};

// --- Floats of 8 bits, and f32 ---------------------------------------------------------------------------------------

struct Form {
  int64_t m, n, k;
};
// Whole instructions, less than one in each direction, several, and ends of their own.
const Form forms[] = {{16, 8, 32}, {64, 64, 64}, {32, 48, 96}, {17, 33, 45}, {1, 5, 7}, {8, 64, 40}, {128, 32, 160}};

struct ProductConfig {
  int form = 0;
  bool ta = false, tb = false;
  int precision = 0;
};

void product(View a, View b, View c, ProductConfig cfg) {
  const auto [M, N, K] = forms[cfg.form];
  Tile left = cfg.ta ? transpose(load(a, {0, 0}, {K, M})) : load(a, {0, 0}, {M, K});  // (M, K)
  Tile right = cfg.tb ? transpose(load(b, {0, 0}, {N, K})) : load(b, {0, 0}, {K, N}); // (K, N)
  store(c, {0, 0}, dot(left, right, load(c, {0, 0}, {M, N}), static_cast<Precision>(cfg.precision)));
}
const Kernel productKernel = kernel("product", product,
                                    {field("form", &ProductConfig::form), field("ta", &ProductConfig::ta),
                                     field("tb", &ProductConfig::tb), field("precision", &ProductConfig::precision)});

TEST_P(NarrowProducts, OfSmallWholeNumbersAreExactInEveryMixAndPrecision) {
  const auto element = [](int64_t i, int64_t j, int64_t shift) {
    return static_cast<double>((i * 11 + j * 5 + shift) % 15 - 7);
  };
  for (int form = 0; form < static_cast<int>(std::size(forms)); ++form)
    for (const Type left : byteFloats)
      for (const Type right : byteFloats)
        for (const int precision : {0, 1}) {
          const auto [M, N, K] = forms[form];
          const bool ta = form % 2 == 1, tb = (form + precision) % 2 == 1;
          const Tensor a = matrix(left, M, K, ta,
                                  [&](int64_t i, int64_t j) { return rawOfReal(left, element(i, j, 0)); }),
                       b = matrix(right, K, N, tb,
                                  [&](int64_t i, int64_t j) { return rawOfReal(right, element(i, j, 3)); }),
                       c = matrix(f32, M, N, false, [](int64_t i, int64_t j) { return rawOfReal(f32, double(i - j)); });
          const std::string config = fmt::format("form={},ta={:d},tb={:d},precision={}", form, ta, tb, precision);
          launch(productKernel, {a.ref(), b.ref(), c.ref()}, config);
          const Raw got = read(c);
          for (int64_t i = 0; i < M * N; ++i) {
            double want = static_cast<double>(i / N - i % N);
            for (int64_t k = 0; k < K; ++k)
              want += element(i / N, k, 0) * element(k, i % N, 3);
            ASSERT_EQ(realOf(f32, got[i]), want)
                << nameOf(left) << " by " << nameOf(right) << ", " << config << ", at " << i;
          }
        }
}

/// Compares c = a · b + c with double precision: `bound` of the sum of the terms' sizes, and `least`.
void expectWithin(double bound, double least, Type left, Type right, const Form &form, const Raw &a, const Raw &b,
                  const Raw &before, const Raw &got, const std::string &what) {
  for (int64_t i = 0; i < form.m * form.n; ++i) {
    double want = realOf(f32, before[i]), size = std::abs(want);
    for (int64_t k = 0; k < form.k; ++k) {
      const double term = realOf(left, a[i / form.n * form.k + k]) * realOf(right, b[k * form.n + i % form.n]);
      want += term;
      size += std::abs(term);
    }
    ASSERT_LE(std::abs(realOf(f32, got[i]) - want), bound * size + least)
        << what << ", at " << i << ": got " << realOf(f32, got[i]) << ", want " << want;
  }
}

// All finite codes. Where a precision is given sums may be coarse: 34 · 2^-13 for what an instruction cuts off.
TEST_P(NarrowProducts, OfFloatsOf8BitsAreWithinTheirBounds) {
  std::mt19937 random(5);
  for (int form = 0; form < static_cast<int>(std::size(forms)); ++form)
    for (const Type left : byteFloats)
      for (const Type right : byteFloats)
        for (const int precision : {0, 1}) {
          const auto [M, N, K] = forms[form];
          const auto codes = [&](Type type, int64_t count) {
            Raw raw;
            while (static_cast<int64_t>(raw.size()) < count)
              if (const uint64_t code = random() & 0xff; std::isfinite(realOf(type, code)))
                raw.push_back(code);
            return raw;
          };
          const Raw a = codes(left, M * K), b = codes(right, K * N), before(M * N, rawOfReal(f32, 0.3));
          const Tensor x = tensor(left, {M, K}, a), y = tensor(right, {K, N}, b), c = tensor(f32, {M, N}, before);
          launch(productKernel, {x.ref(), y.ref(), c.ref()}, fmt::format("form={},precision={}", form, precision));
          const double terms = static_cast<double>(K + 1);
          expectWithin((isGpu() ? 3 : 1) * terms * roundoff + (precision && isGpu() ? 34 * 0x1p-13 : 0), 0, left, right,
                       forms[form], a, b, before, read(c),
                       fmt::format("{} by {}, form {}, precision {}", nameOf(left), nameOf(right), form, precision));
        }
}

/// Processors and GPUs differ in what they have for such products.
std::vector<std::string> everyMachine() {
  std::vector<std::string> names = testDevices(/*everyProcessor=*/true);
  if (!std::getenv("KILN_TEST_DEVICE"))
    for (const char *name : {"simulator:sm_89", "simulator:sm_90a", "simulator:sm_100a", "simulator:sm_120"})
      names.emplace_back(name);
  return names;
}
KILN_ON_THESE(NarrowProducts, everyMachine());

} // namespace
