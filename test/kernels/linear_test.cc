// Epilogues of a linear layer, forward and backward, against double precision: every activation, alone and with bias,
// residual and dropout.

#include "kernels/activate.h"
#include "kernels/column_sums.h"
#include "kernels/dropout.h"
#include "test/expect_error.h"
#include "test/kernels/harness.h"
#include "test/kernels/host_dropout.h"

#include <cmath>

namespace kiln {
namespace {

/// An activation and its derivative; |derivative| ≤ steepest for |x| ≤ 6, and its own derivative is at most bend.
struct Formula {
  Activation activation;
  double (*value)(double), (*slope)(double);
  double steepest, bend;
};

double below(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
double logistic(double x) { return 1 / (1 + std::exp(-x)); }

const std::vector<Formula> formulas = {
    {Activation::gelu_erf, [](double x) { return x * below(x); },
     [](double x) { return below(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }, 1.13, 1},
    {Activation::relu, [](double x) { return std::max(x, 0.0); }, [](double x) { return x > 0 ? 1.0 : 0.0; }, 1, 0},
    {Activation::none, [](double x) { return x; }, [](double) { return 1.0; }, 1, 0},
    {Activation::gelu, geluOf, geluSlopeOf, 1.13, 1},
    {Activation::relu2, [](double x) { return x > 0 ? x * x : 0; }, [](double x) { return x > 0 ? 2 * x : 0; }, 12, 2},
    {Activation::silu, [](double x) { return x * logistic(x); },
     [](double x) { return logistic(x) * (1 + x * (1 - logistic(x))); }, 1.1, 0.5}};

class LinearTest : public KernelTest {
protected:
  static constexpr int64_t M = 33, N = 40, K = 24, time = 11, most = 12;
  static constexpr int64_t key = 77, base = 3;
  MatmulConfig small() const { return {.bm = 32, .bn = 32, .bk = 16, .precision = precision()}; }

  /// Dropout in sequences of 11 of 12 rows, from the third of a step on.
  Dropout dropout(double chance, DropoutKind kind = DropoutKind::inverted) {
    rngState = Tensor(device, i64, {2});
    const int64_t numbers[] = {key, base};
    rngState.upload(numbers, sizeof numbers);
    return {{chance, kind}, rngState.ref(), time, most};
  }
  /// The dropout factor of element i of an (M, N).
  static double mask(const Dropout &d, int64_t i) {
    const int64_t m = i / N, row = (base + m / time) * most + m % time;
    return test::isKept(key, row, N, i % N, d.rate.threshold()) ? d.rate.scale() : 0;
  }
  Tensor rngState;
};

// C = activation(A · B + bias): an error of the product, and the rounding of the sum to C's type, grow by the slope; a
// formula costs about ten roundings of values of the argument's size, and of its result's.
TEST_P(LinearTest, AppliesEveryActivation) {
  for (const Formula &f : taken(GetParam(), formulas, 2))
    for (const bool biased : taken<char>(GetParam(), {true, false}, 1)) {
      Array a = uniform({M, K}, type()), b = uniform({K, N}, type()), bias = uniform({N}, type());
      Array preact = unwritten({M, N}, type()), c = unwritten({M, N}, type());
      run(planLinear(target(), Layout::nn, a, b, c,
                     {.bias = biased ? std::optional(bias.ref()) : std::nullopt,
                      .activation = f.activation,
                      .preact = preact.ref()},
                     small()));
      std::vector<Want> before = product(Layout::nn, a, b, {M, N, K}), after;
      for (int64_t i = 0; i < M * N; ++i) {
        before[i].value += biased ? bias[i % N] : 0;
        before[i].slack += 2 * roundoff;
        const double y = f.value(before[i].value);
        const double rounding = unit(type()) * std::abs(before[i].value);
        after.push_back({y, f.steepest * (before[i].slack + rounding) +
                                10 * transcendental * (std::abs(before[i].value) + std::abs(y))});
      }
      SCOPED_TRACE(activationNames[static_cast<size_t>(f.activation)]);
      expectClose("preact", preact, before);
      expectClose("c", c, after);
    }
}

// Activation and dropout are recomputed from the pre-activation with equal bits, for tiles of any size, also in place.
TEST_P(LinearTest, ActivatesAgainWhatAProductLeft) {
  for (const Activation activation :
       taken<Activation>(GetParam(), {Activation::gelu, Activation::gelu_erf, Activation::relu2, Activation::silu}, 2))
    for (const bool drops : taken<char>(GetParam(), {true, false}, 1)) {
      SCOPED_TRACE(activationNames[static_cast<size_t>(activation)] + (drops ? " dropped" : ""));
      const std::optional<Dropout> d = drops ? std::optional(dropout(0.5)) : std::nullopt;
      Array a = uniform({M, K}, type()), b = uniform({K, N}, type()), bias = uniform({N}, type());
      Array preact = unwritten({M, N}, type()), c = unwritten({M, N}, type()), again = unwritten({M, N}, type());
      run(planLinear(target(), Layout::nn, a, b, c,
                     {.bias = bias.ref(), .activation = activation, .preact = preact.ref(), .dropout = d}, small()));
      run(planActivate(target(), activation, preact, again, d));
      EXPECT_TRUE(c.bytes() == again.bytes());
      run(planActivate(target(), activation, preact, preact, d, ActivateConfig{.rows = 3, .columns = 16}));
      EXPECT_TRUE(c.bytes() == preact.bytes());
    }
}

// C = (A · Bᵀ) ∘ activation'(from), in place of `from`: the argument, or relu's result.
TEST_P(LinearTest, CarriesAGradientThroughEveryActivation) {
  for (const Formula &f : taken(GetParam(), formulas, 2)) {
    Array a = uniform({M, K}, type()), b = uniform({N, K}, type()), from = uniform({M, N}, type(), 4);
    if (isKnownByResult(f.activation)) {
      for (double &number : from.values)
        number = f.value(number);
      from.reset();
    }
    run(planLinearBackward(target(), Layout::nt, a, b, from, {.activation = f.activation, .from = from.ref()},
                           small()));
    std::vector<Want> want = product(Layout::nt, a, b, {M, N, K});
    for (int64_t i = 0; i < M * N; ++i) {
      const double slope = f.slope(from[i]); // its own error: a few roundings of terms below 10
      want[i].slack = want[i].slack * std::abs(slope) + std::abs(want[i].value) * 10 * 2 * transcendental;
      want[i].value *= slope;
    }
    SCOPED_TRACE(activationNames[static_cast<size_t>(f.activation)]);
    expectClose("c", from, want);
  }
}

// C = residual + drop(relu(A · B + bias)) of integers, which is exact: kept numbers are doubled, and follow the
// definition. In place of C, with and without the other parts.
TEST_P(LinearTest, DropsBeforeTheResidual) {
  for (const auto &[biased, added, activation] :
       taken<std::tuple<bool, bool, Activation>>(GetParam(),
                                                 {{true, true, Activation::none},
                                                  {false, true, Activation::relu},
                                                  {true, false, Activation::relu},
                                                  {false, false, Activation::none}},
                                                 1)) {
    const Dropout d = dropout(0.5);
    Array a = integers({M, K}, type(), 1), b = integers({K, N}, type(), 1), bias = integers({N}, type(), 9);
    Array c = integers({M, N}, type(), 9);
    run(planLinear(target(), Layout::nn, a, b, c,
                   {.bias = biased ? std::optional(bias.ref()) : std::nullopt,
                    .activation = activation,
                    .dropout = d,
                    .residual = added ? std::optional(c.ref()) : std::nullopt},
                   small()));
    std::vector<double> want;
    const std::vector<Want> sum = product(Layout::nn, a, b, {M, N, K});
    for (int64_t i = 0; i < M * N; ++i) {
      const double y = sum[i].value + (biased ? bias[i % N] : 0);
      want.push_back((activation == Activation::relu ? std::max(y, 0.0) : y) * mask(d, i) + (added ? c[i] : 0));
    }
    expectEqual("c", c.read(), want);
  }
}

// The gradient uses the same dropout mask, and relu's mask from the result, which includes dropout.
TEST_P(LinearTest, CarriesAGradientThroughTheMask) {
  const Dropout d = dropout(0.5);
  for (const Activation activation :
       taken<Activation>(GetParam(), {Activation::relu, Activation::relu2, Activation::none}, 1)) {
    Array a = integers({M, K}, type(), 1), b = integers({N, K}, type(), 1), from = integers({M, N}, type(), 2);
    for (int64_t i = 0; i < M * N && activation == Activation::relu; ++i)
      from.values[i] = std::max(from[i], 0.0) * mask(d, i);
    from.reset();
    Array c = unwritten({M, N}, type());
    run(planLinearBackward(target(), Layout::nt, a, b, c, {activation, from.ref(), d}, small()));
    std::vector<double> want;
    const std::vector<Want> sum = product(Layout::nt, a, b, {M, N, K});
    for (int64_t i = 0; i < M * N; ++i)
      want.push_back(sum[i].value * mask(d, i) *
                     (activation == Activation::none    ? 1
                      : activation == Activation::relu2 ? 2 * std::max(from[i], 0.0)
                                                        : from[i] > 0));
    expectEqual("c", c.read(), want);
  }
}

// Dropout of a matrix, also in its place. Evaluations drop nothing: inverted dropout does nothing, plain scales.
TEST_P(LinearTest, DropoutAlone) {
  for (const DropoutKind kind : {DropoutKind::inverted, DropoutKind::plain}) {
    Dropout d = dropout(0.5, kind);
    Array x = integers({M, N}, type(), 9), out = unwritten({M, N}, type());
    std::vector<double> want, evaluated;
    for (int64_t i = 0; i < M * N; ++i) {
      want.push_back(x[i] * mask(d, i));
      evaluated.push_back(x[i] * (kind == DropoutKind::plain ? 0.5 : 1));
    }
    run(planDropout(target(), x, out, d));
    expectEqual("out", out.read(), want);
    run(planDropout(target(), x, x, d));
    expectEqual("in place", x.read(), want);
    x.reset();
    d.rngState = {};
    run(planDropout(target(), x, out, d));
    expectEqual("evaluation", out.read(), evaluated);
  }
}

// Sums of columns of a part of a matrix, in parts that the rows do not fill, replaced and added to.
TEST_P(LinearTest, SumsColumns) {
  for (const bool accumulate : {false, true}) {
    Array x = integers({M, N + 3}, type(), 5), out = integers({N}, type(), 3);
    std::vector<double> want = accumulate ? out.values : std::vector<double>(N, 0);
    for (int64_t i = 0; i < M * N; ++i)
      want[i % N] += x[i / N * (N + 3) + 2 + i % N];
    run(planColumnSums(target(), x.ref().slice(1, 2, N), out, accumulate,
                       ColumnSumsConfig{.rows = 10, .columns = 16, .block = 4}));
    expectEqual("sums", out.read(), want);
    out.reset();
    run(planColumnSums(target(), x.ref().slice(1, 2, N), out, accumulate));
    expectEqual("sums", out.read(), want);
  }
}

TEST_P(LinearTest, RefusesWhatDoesNotFit) {
  Array a = uniform({M, K}, type()), b = uniform({K, N}, type()), c = unwritten({M, N}, type());
  Dropout d = dropout(0.5);
  d.time = 10;
  expectError([&] { planLinear(target(), Layout::nn, a, b, c, {.dropout = d}); },
              {"'matmul_linear': expected whole sequences of at most 12 rows, but got 33 rows in sequences of 10"});
  expectError([&] { planLinear(target(), Layout::nn, a, b, c, {.bias = a.ref(), .activation = Activation::relu}); },
              {"'matmul_linear': expected 'bias' of shape 40, but got 33x24"});
  expectError([&] { planLinearBackward(target(), Layout::nn, a, b, c, {.activation = Activation::relu}); },
              {"'matmul_linear_backward': an activation requires 'from'"});
}

KILN_ON_PRODUCT_MACHINES(LinearTest);

} // namespace
} // namespace kiln
