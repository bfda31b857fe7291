// Options of LayerNorm and cross-entropy, forward and backward, against an autograd tape in double precision.
//
// Tolerances: results are rounded to their type, by at most 2 units in the last place in norm. Intermediate f32 sums
// have up to 300 terms, which may cancel: 2e-5 of the norm of the summed terms.

#include "kernels/cross_entropy.h"
#include "kernels/layernorm.h"
#include "test/kernels/harness.h"
#include "test/models/reference/tape.h"

#include <cmath>

namespace kiln {
namespace {

using test::Tape;
using test::Value;

class GradientsTest : public KernelTest {
protected:
  static double normOf(const std::vector<double> &numbers) {
    double squares = 0;
    for (const double number : numbers)
      squares += number * number;
    return std::sqrt(squares);
  }
  /// `summed`: the norm of the summed terms, if it exceeds the expected result's.
  void expectNear(const char *what, const std::vector<double> &got, const std::vector<double> &want,
                  double summed = 0) {
    ASSERT_EQ(got.size(), want.size());
    std::vector<double> difference(got.size());
    for (size_t i = 0; i < got.size(); ++i)
      difference[i] = got[i] - want[i];
    const double unit = type() == bf16 ? 0x1p-8 : type() == f16 ? 0x1p-11 : 0x1p-24, norm = normOf(want);
    EXPECT_LE(normOf(difference), 2 * unit * norm + 2e-5 * std::max(norm, summed)) << what;
  }

  /// LayerNorm with `options` of random rows; the first row has a small deviation.
  void normalise(int64_t N, int64_t C, const LayerNormOptions &options, bool residual) {
    Array x = uniform({N, C}, type(), 3), delta = uniform({N, C}, type()), gamma = uniform({C}, type()),
          beta = uniform({C}, type()), dout = uniform({N, C}, type());
    for (int64_t c = 0; c < C; ++c)
      x.values[c] = x[c] / 64;
    x.reset();
    Array sum = unwritten({N, C}, type()), out = unwritten({N, C}, type()), dx = unwritten({N, C}, type());
    Array mean = unwritten({N}, f32), rstd = unwritten({N}, f32), dgamma = unwritten({C}, f32),
          dbeta = unwritten({C}, f32);
    const Array &in = residual ? sum : x;
    if (residual)
      run(planResidualLayerNorm(target(), x, delta, gamma, beta, sum, out, mean, rstd, options));
    else
      run(planLayerNorm(target(), x, gamma, beta, out, mean, rstd, options));
    run(planLayerNormBackward(target(), dout, in, gamma, mean, rstd, dx, dgamma, dbeta, {}, options));

    Tape tape;
    Value rows = tape.value(N, C, residual ? sum.read() : x.values);
    Value scale = tape.value(1, C, gamma.values), shift = tape.value(1, C, beta.values);
    Value y = normalised(rows, {options.ddof, options.epsilon, options.epsOutsideSqrt}) * scale + shift;
    const std::vector<double> ones(N + C, 1);
    Value total = matmul(matmul(tape.value(1, N, {ones.begin(), ones.begin() + N}), y * tape.value(N, C, dout.values)),
                         tape.value(C, 1, {ones.begin(), ones.begin() + C}));
    tape.play(total);
    expectNear("out", out.read(), y.numbers());
    std::vector<double> flows = dout.values; // what comes to the rows, before their mean and deviation are fixed
    const std::vector<double> steep = rstd.read();
    for (int64_t i = 0; i < N * C; ++i)
      flows[i] *= gamma[i % C] * steep[i / C];
    expectNear("dx", dx.read(), rows.gradient(), normOf(flows));
    expectNear("dgamma", dgamma.read(), scale.gradient());
    expectNear("dbeta", dbeta.read(), shift.gradient());
  }
};

// The divisor n − 1, ε in the root, outside of it and 0, alone and together, in wide and ragged rows; with the residual
// added first, too.
TEST_P(GradientsTest, OfLayerNormsOptions) {
  for (const auto &[N, C] : {std::pair<int64_t, int64_t>{9, 64}, {3, 300}, {5, 2}, {7, 17}})
    for (const LayerNormOptions &options :
         {LayerNormOptions(1e-5f, 1), LayerNormOptions(1e-2f, 0, true), LayerNormOptions(0.5f, 1, true),
          LayerNormOptions(0, 1), LayerNormOptions(0, 0, true)})
      for (const bool residual : {false, true}) {
        SCOPED_TRACE(testing::Message() << N << " rows of " << C << ", epsilon " << options.epsilon << ", ddof "
                                        << options.ddof << (options.epsOutsideSqrt ? ", outside" : ""));
        normalise(N, C, options, residual);
      }
}

// A row of equal numbers becomes the shift, also where ε is 0; then its gradient is 0.
TEST_P(GradientsTest, OfRowsWithoutVariance) {
  const int64_t C = 17;
  for (const LayerNormOptions &options :
       {LayerNormOptions(0, 1), LayerNormOptions(0, 0, true), LayerNormOptions(0.25f, 0, true)}) {
    Array x = array({2, C}, type(), std::vector<double>(2 * C, 1.5)), gamma = uniform({C}, type()),
          beta = uniform({C}, type()), dout = uniform({2, C}, type()), out = unwritten({2, C}, type()),
          dx = unwritten({2, C}, type());
    Array mean = unwritten({2}, f32), rstd = unwritten({2}, f32), dgamma = unwritten({C}, f32),
          dbeta = unwritten({C}, f32);
    run(planLayerNorm(target(), x, gamma, beta, out, mean, rstd, options));
    run(planLayerNormBackward(target(), dout, x, gamma, mean, rstd, dx, dgamma, dbeta, {}, options));
    std::vector<double> shift = beta.values;
    shift.insert(shift.end(), beta.values.begin(), beta.values.end());
    expectEqual("out", out.read(), shift);
    expectEqual("rstd", rstd.read(), std::vector<double>(2, options.epsilon > 0 ? 1 / options.epsilon : 0));
    expectEqual("dgamma", dgamma.read(), std::vector<double>(C, 0));
    for (const double slope : dx.read())
      EXPECT_TRUE(options.epsilon > 0 ? std::isfinite(slope) : slope == 0) << slope;
  }
}

// Losses with label smoothing and their gradient; some targets are missing.
TEST_P(GradientsTest, OfLabelSmoothing) {
  for (const int64_t V : {1, 7, 64, 300})
    for (const float smoothing : {0.1f, 0.5f}) {
      const std::vector<int32_t> targets = {0, -1, static_cast<int32_t>(V - 1), static_cast<int32_t>(V / 2)};
      Array logits = uniform({4, V}, type(), 4), at = array({4}, i32, {targets.begin(), targets.end()}),
            losses = unwritten({4}, f32);
      const std::vector<double> before = logits.values;
      run(planCrossEntropy(target(), logits, at, losses, V, 1.0f / 3, -1, {}, {.smoothing = smoothing}));
      Tape tape;
      Value x = tape.value(4, V, before), loss = crossEntropy(x, targets, smoothing);
      tape.play(loss);
      const std::vector<double> got = losses.read();
      expectNear("loss", {(got[0] + got[1] + got[2] + got[3]) / 3}, loss.numbers());
      expectNear("gradient", logits.read(), x.gradient(), /*probabilities of rows:*/ 1);
    }
}

KILN_ON_MACHINES(GradientsTest);

} // namespace
} // namespace kiln
