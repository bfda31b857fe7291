// Products of a few rows, which are multiplied elementwise with many steps of K side by side: in both layouts, with
// every epilogue, against sums in double precision.

#include "test/expect_error.h"
#include "test/kernels/harness.h"

#include <cmath>

namespace kiln {
namespace {

class FewRowsTest : public KernelTest {
protected:
  using Size = ProductSize;
  /// Two steps of K in each iteration, each of eight or four terms in parallel.
  static MatmulConfig few(int64_t M, int side = 8) {
    MatmulConfig config;
    config.bm = static_cast<int>(M), config.bn = 16, config.bk = 16, config.kUnroll = side;
    return config;
  }
};

constexpr Layout layouts[] = {Layout::nn, Layout::nt};

// Small integers, whose sums are exact: every number of rows, and every edge.
TEST_P(FewRowsTest, ProductsOfIntegersAreExact) {
  for (const Layout layout : layouts)
    for (const Size s : taken<Size>(GetParam(), {{1, 37, 45}, {3, 16, 16}, {8, 33, 7}, {5, 1, 50}, {2, 64, 1}}, 2)) {
      const Array a = integers({s.M, s.K}, type(), 1), b = integers(shapeB(layout, s), type(), 1);
      Array c = unwritten({s.M, s.N}, type());
      SCOPED_TRACE(testing::Message() << "layout " << static_cast<int>(layout) << " " << s.M << "x" << s.N << "x"
                                      << s.K);
      run(planMatmul(target(), layout, a, b, c, false, few(s.M)));
      expectEqual("c", c.read(), exactProduct(layout, a, b, s));
    }
}

// With the configs that plans pick: on a GPU one, two, four or eight rows, on a CPU each number up to four, several
// iterations over K, and pieces of B's rows of every length.
TEST_P(FewRowsTest, AsPlansPick) {
  const bool all = takesAll(GetParam());
  for (const Layout layout : layouts)
    for (const Size s :
         taken<Size>(GetParam(), {{1, 200, 1100}, {8, 70, 530}, {3, 4500, 40}, {2, 70, 2100}}, all ? 4 : 1)) {
      const Array a = uniform({s.M, s.K}, type()), b = uniform(shapeB(layout, s), type());
      Array c = unwritten({s.M, s.N}, type());
      run(planMatmul(target(), layout, a, b, c));
      expectClose("c", c, product(layout, a, b, s));
    }
}

// Matrices may be parts of wider ones.
TEST_P(FewRowsTest, RowStridesAreFree) {
  const Size s = {3, 20, 40};
  for (const Layout layout : layouts) {
    const Array a = integers({s.M, s.K + 5}, type(), 1);
    const Shape whole = shapeB(layout, {s.M, s.N + 3, s.K + 7});
    const Array b = integers(whole, type(), 1);
    Array c = integers({s.M, s.N + 9}, type(), 3);
    const TensorRef part =
        layout == Layout::nt ? b.ref().slice(0, 2, s.N).slice(1, 1, s.K) : b.ref().slice(1, 2, s.N).slice(0, 1, s.K);
    run(planMatmul(target(), layout, a.ref().slice(1, 2, s.K), part, c.ref().slice(1, 4, s.N), false, few(4)));
    std::vector<double> want = c.values;
    for (int64_t m = 0; m < s.M; ++m)
      for (int64_t n = 0; n < s.N; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < s.K; ++k)
          sum += a[m * (s.K + 5) + 2 + k] *
                 (layout == Layout::nt ? b[(n + 2) * whole[1] + k + 1] : b[(k + 1) * whole[1] + n + 2]);
        want[m * (s.N + 9) + 4 + n] = sum;
      }
    expectEqual("c", c.read(), want);
  }
}

// Every kernel of a product: accumulation, a bias, a residual, and an activation.
TEST_P(FewRowsTest, EveryEpilogue) {
  const Size s = {3, 40, 24};
  const Array a = integers({s.M, s.K}, type(), 1), b = integers({s.K, s.N}, type(), 1),
              bias = integers({s.N}, type(), 4), residual = integers({s.M, s.N}, type(), 4);
  const std::vector<double> sums = exactProduct(Layout::nn, a, b, s);
  const auto wanted = [&](auto of) {
    std::vector<double> want;
    for (int64_t i = 0; i < s.M * s.N; ++i)
      want.push_back(of(sums[i], bias[i % s.N], residual[i]));
    return want;
  };
  const auto check = [&](const char *what, auto plan, auto of) {
    Array c = unwritten({s.M, s.N}, type());
    run(plan(c));
    expectEqual(what, c.read(), wanted(of));
  };
  const MatmulConfig config = few(4);
  check(
      "bias", [&](Array &c) { return planMatmulBias(target(), Layout::nn, a, b, bias, c, config); },
      [](double sum, double bias, double) { return sum + bias; });
  check(
      "residual", [&](Array &c) { return planMatmulResidual(target(), Layout::nn, a, b, bias, residual, c, config); },
      [](double sum, double bias, double residual) { return sum + bias + residual; });
  check(
      "linear",
      [&](Array &c) {
        return planLinear(target(), Layout::nn, a, b, c,
                          {.bias = bias.ref(), .activation = Activation::relu, .residual = residual.ref()}, config);
      },
      [](double sum, double bias, double residual) { return std::max(sum + bias, 0.0) + residual; });
  Array added = integers({s.M, s.N}, type(), 4);
  run(planMatmul(target(), Layout::nn, a, b, added, true, config));
  std::vector<double> want = added.values;
  for (size_t i = 0; i < want.size(); ++i)
    want[i] += sums[i];
  expectEqual("added", added.read(), want);

  Array preact = unwritten({s.M, s.N}, type()), gelu = unwritten({s.M, s.N}, type());
  run(planMatmulGelu(target(), Layout::nn, a, b, bias, preact.ref(), gelu, config));
  expectEqual("preact", preact.read(), wanted([](double sum, double bias, double) { return sum + bias; }));
  std::vector<Want> activated;
  for (const double x : preact.read())
    activated.push_back({geluOf(x), 10 * transcendental * std::abs(x)});
  expectClose("gelu", gelu, activated);
}

// Numbers after a row of A, and after B's last row, do not affect a sum, although the last iteration is padded.
TEST_P(FewRowsTest, WhatLiesBehindIsNotRead) {
  const Size s = {1, 20, 21};
  for (const Layout layout : layouts) {
    Array a = integers({2, s.K + 3}, type(), 1), b = integers(shapeB(layout, {s.M, s.N + 3, s.K + 3}), type(), 1);
    const int64_t width = b.ref().extents[1];
    for (int64_t m = 0; m < 2; ++m)
      for (int64_t k = m == 0 ? s.K : 0; k < s.K + 3; ++k)
        a.values[m * (s.K + 3) + k] = INFINITY;
    for (int64_t i = 0; i < std::ssize(b.values); ++i) {
      const int64_t n = layout == Layout::nt ? i / width : i % width, k = layout == Layout::nt ? i % width : i / width;
      if (n >= s.N || k >= s.K)
        b.values[i] = NAN;
    }
    a.reset(), b.reset();
    Array c = unwritten({s.M, s.N}, type());
    run(planMatmul(target(), layout, a.ref().slice(0, 0, 1).slice(1, 0, s.K),
                   b.ref().slice(0, 0, layout == Layout::nt ? s.N : s.K).slice(1, 0, layout == Layout::nt ? s.K : s.N),
                   c, false, few(1)));
    for (const double value : c.read())
      EXPECT_TRUE(std::isfinite(value)) << value;
  }
}

KILN_ON_PRODUCT_MACHINES(FewRowsTest);

TensorRef tensor(Shape extents, Type type) { return TensorRef::dense(nullptr, type, std::move(extents)); }

// Up to eight rows of f32 on a GPU, without tensor cores, and up to four on a CPU; other products use tiles.
TEST(FewRows, AreForExactProductsOnGpus) {
  const Target cpu = {"cpu", CpuFacts{}}, exact = {"gpu", GpuFacts{}, Precision::ieee}, gpu = {"gpu", GpuFacts{}};
  for (const Layout layout : layouts) {
    EXPECT_EQ(pickMatmul(exact, layout, 9, 768, 768).kUnroll, 0);
    EXPECT_EQ(pickMatmul(gpu, layout, 1, 768, 768).kUnroll, 0);
    EXPECT_EQ(pickMatmul(exact, layout, 1, 768, 768, bf16).kUnroll, 0);
    for (const int64_t M : {1, 5, 8}) {
      const MatmulConfig config = pickMatmul(exact, layout, M, 768, 768);
      EXPECT_GT(config.kUnroll, 0);
      EXPECT_EQ(config.bm, M == 5 ? 8 : M);
      EXPECT_EQ(config.bk % config.kUnroll, 0);
    }
    for (const Type type : {f32, bf16}) {
      EXPECT_GT(pickMatmul(cpu, layout, 1, 768, 768, type).kUnroll, 0);
      EXPECT_GT(pickMatmul(cpu, layout, 4, 768, 768, type).kUnroll, 0);
      EXPECT_EQ(pickMatmul(cpu, layout, 5, 768, 768, type).kUnroll, 0);
    }
  }
  EXPECT_EQ(pickMatmul(exact, Layout::tn, 1, 768, 768).kUnroll, 0);
  EXPECT_EQ(pickMatmul(exact, Layout::nn, 1, 768, 768, i8).kUnroll, 0);
}

TEST(FewRows, NameWhatDoesNotFit) {
  const Target gpu = {"gpu", GpuFacts{}};
  MatmulConfig config;
  config.kUnroll = 48;
  const auto planned = [&](Layout layout, Type type) {
    return [&, layout, type] {
      planMatmul(gpu, layout, tensor({8, 8}, type), tensor({8, 8}, type), tensor({8, 8}, type == i8 ? i32 : type),
                 false, config);
    };
  };
  expectError(planned(Layout::nn, f32), {"'matmul': expected 'k_unroll' to divide 'bk', but got 48 and 64"});
  const char *const none = "'matmul': 'k_unroll' must be 0 for i8 operands or a transposed 'a', but got 48";
  expectError(planned(Layout::tn, f32), {none});
  expectError(planned(Layout::nn, i8), {none});
}

} // namespace
} // namespace kiln
