// LayerNorm forward and backward compared with double precision, at widths around vector lengths.
//
// Tolerances. Sums over C elements in f32 have an error of (C + 1) · u · Σ |terms|. For rows of standard deviation near
// 1, the error of mean and variance is (C + 8) · u of the row's largest element. So is that of results with a few
// multiplications more: `slack` times a count of terms.

#include "kernels/layernorm.h"
#include "test/kernels/harness.h"

#include <cmath>

namespace kiln {
namespace {

constexpr float epsilon = 1e-5f;

class LayerNormTest : public KernelTest {
protected:
  struct Size {
    int64_t N, C;
  };
  const std::vector<Size> sizes = {{9, 64}, {4, 1}, {7, 17}, {3, 100}, {130, 48}};

  struct Forward {
    std::vector<Want> out, mean, rstd;
  };
  Forward forward(const std::vector<double> &x, const Array &gamma, const Array &beta, Size s) {
    Forward f;
    for (int64_t n = 0; n < s.N; ++n) {
      double mean = 0, variance = 0, size = 0;
      for (int64_t c = 0; c < s.C; ++c)
        mean += x[n * s.C + c] / s.C, size = std::max(size, std::abs(x[n * s.C + c]));
      for (int64_t c = 0; c < s.C; ++c)
        variance += std::pow(x[n * s.C + c] - mean, 2) / s.C;
      const double rstd = 1 / std::sqrt(variance + epsilon), slack = (s.C + 8) * roundoff * size;
      // d rstd = rstd³/2 · d variance; d variance = 2 · spread · d x.
      const double rstdSlack = rstd * (4 * slack * rstd + (s.C + 20) * roundoff);
      f.mean.push_back({mean, slack});
      f.rstd.push_back({rstd, rstdSlack});
      for (int64_t c = 0; c < s.C; ++c) {
        const double centred = x[n * s.C + c] - mean, y = centred * rstd * gamma[c];
        f.out.push_back({y + beta[c], std::abs(gamma[c]) * (2 * slack * rstd + std::abs(centred) * rstdSlack) +
                                          4 * roundoff * (std::abs(y) + std::abs(beta[c]))});
      }
    }
    return f;
  }
};

TEST_P(LayerNormTest, NormalisesRows) {
  for (const Size s : sizes) {
    Array x = uniform({s.N, s.C}, type(), 3), gamma = uniform({s.C}, type()), beta = uniform({s.C}, type());
    Array out = unwritten({s.N, s.C}, type()), mean = unwritten({s.N}, f32), rstd = unwritten({s.N}, f32);
    run(planLayerNorm(target(), x, gamma, beta, out, mean, rstd, epsilon));
    const Forward want = forward(x.values, gamma, beta, s);
    expectClose("mean", mean, want.mean);
    expectClose("rstd", rstd, want.rstd);
    expectClose("out", out, want.out);
  }
}

// The sum overwrites x, and the stored sum is normalised.
TEST_P(LayerNormTest, AddsTheResidualFirst) {
  for (const Size s : sizes) {
    Array x = uniform({s.N, s.C}, type(), 3), delta = uniform({s.N, s.C}, type(), 3);
    Array gamma = uniform({s.C}, type()), beta = uniform({s.C}, type());
    Array out = unwritten({s.N, s.C}, type()), mean = unwritten({s.N}, f32), rstd = unwritten({s.N}, f32);
    run(planResidualLayerNorm(target(), x, delta, gamma, beta, x, out, mean, rstd, epsilon));
    std::vector<Want> sum;
    for (int64_t i = 0; i < s.N * s.C; ++i)
      sum.push_back({x[i] + delta[i], roundoff * std::abs(x[i] + delta[i])});
    expectClose("sum", x, sum);
    const Forward want = forward(x.read(), gamma, beta, s);
    expectClose("mean", mean, want.mean);
    expectClose("rstd", rstd, want.rstd);
    expectClose("out", out, want.out);
  }
}

// dx, dgamma and dbeta from given statistics, with 1 … 5 programs, added to the outputs or replacing them.
TEST_P(LayerNormTest, BackwardOfRowsAndParameters) {
  for (const Size s : sizes)
    for (const bool accumulate : {false, true}) {
      Array x = uniform({s.N, s.C}, type(), 2), dout = uniform({s.N, s.C}, type()), gamma = uniform({s.C}, type());
      Array mean = uniform({s.N}, f32, 0.2), rstd = uniform({s.N}, f32, 0.5);
      Array dx = uniform({s.N, s.C}, type()), dgamma = uniform({s.C}, type()), dbeta = uniform({s.C}, type());
      run(planLayerNormBackward(target(), dout, x, gamma, mean, rstd, dx, dgamma, dbeta, {accumulate, accumulate}, {},
                                LayerNormBackwardConfig{.block = 2, .rows = 32}));
      std::vector<Want> wantX, wantGamma(s.C), wantBeta(s.C);
      for (int64_t c = 0; c < s.C && accumulate; ++c)
        wantGamma[c].value = dgamma[c], wantBeta[c].value = dbeta[c];
      for (int64_t n = 0; n < s.N; ++n) {
        double gMean = 0, gxMean = 0, size = 0;
        for (int64_t c = 0; c < s.C; ++c) {
          const int64_t i = n * s.C + c;
          const double xhat = (x[i] - mean[n]) * rstd[n], g = dout[i] * gamma[c];
          gMean += g / s.C, gxMean += g * xhat / s.C, size = std::max({size, std::abs(g), std::abs(g * xhat)});
          wantGamma[c].value += dout[i] * xhat, wantBeta[c].value += dout[i];
          wantGamma[c].slack += (s.N + 4) * roundoff * std::abs(dout[i]) * (std::abs(xhat) + 1);
          wantBeta[c].slack += (s.N + 1) * roundoff * std::abs(dout[i]);
        }
        for (int64_t c = 0; c < s.C; ++c) {
          const int64_t i = n * s.C + c;
          const double xhat = (x[i] - mean[n]) * rstd[n], old = accumulate ? dx[i] : 0;
          const double value = (dout[i] * gamma[c] - gMean - xhat * gxMean) * rstd[n];
          wantX.push_back({value + old, (s.C + 8) * roundoff * size * (2 + std::abs(xhat)) * std::abs(rstd[n]) +
                                            2 * roundoff * (std::abs(value) + std::abs(old))});
        }
      }
      for (int64_t c = 0; c < s.C; ++c)
        wantGamma[c].slack += 2 * roundoff, wantBeta[c].slack += 2 * roundoff; // the old value, below 1
      expectClose("dx", dx, wantX);
      expectClose("dgamma", dgamma, wantGamma);
      expectClose("dbeta", dbeta, wantBeta);
    }
}

// dx may overwrite dout.
TEST_P(LayerNormTest, BackwardInPlace) {
  Array x = uniform({9, 33}, type()), dout = uniform({9, 33}, type()), gamma = uniform({33}, type());
  Array mean = uniform({9}, f32), rstd = uniform({9}, f32), dx = unwritten({9, 33}, type());
  Array dgamma = unwritten({33}, f32), dbeta = unwritten({33}, f32);
  run(planLayerNormBackward(target(), dout, x, gamma, mean, rstd, dx, dgamma, dbeta, {}));
  const std::vector<char> sums = dgamma.bytes();
  run(planLayerNormBackward(target(), dout, x, gamma, mean, rstd, dout, dgamma, dbeta, {}));
  EXPECT_TRUE(dx.bytes() == dout.bytes());
  EXPECT_TRUE(sums == dgamma.bytes());
}

// The residual may be at another address, and the partial rows may be summed later: the same bits as in place and at
// once.
TEST_P(LayerNormTest, BackwardWithAResidualElsewhereAndSumsLater) {
  const int64_t N = 70, C = 33;
  Array x = uniform({N, C}, type()), dout = uniform({N, C}, type()), gamma = uniform({C}, type());
  Array mean = uniform({N}, f32), rstd = uniform({N}, f32), residual = uniform({N, C}, type());
  Array dx = unwritten({N, C}, type()), dgamma = unwritten({C}, f32), dbeta = unwritten({C}, f32);
  const int64_t P = layerNormParts(target(), N, C, type());
  Array parts = unwritten({2, P, C}, f32);
  run(planLayerNormBackward(target(), dout, x, gamma, mean, rstd, dx, dgamma, dbeta,
                            {.dx = true, .residual = residual.ref(), .parts = parts.ref()}));
  run({.launches = launchLayerNormSums(target(), parts.ref(), dgamma, dbeta, false)});
  const std::vector<char> scale = dgamma.bytes(), shift = dbeta.bytes();
  run(planLayerNormBackward(target(), dout, x, gamma, mean, rstd, residual, dgamma, dbeta, {.dx = true}));
  EXPECT_TRUE(dx.bytes() == residual.bytes());
  EXPECT_TRUE(scale == dgamma.bytes());
  EXPECT_TRUE(shift == dbeta.bytes());
}

// Partial rows are summed in the order of the programs.
TEST_P(LayerNormTest, BackwardIsDeterministic) {
  Array x = uniform({50, 33}, type()), dout = uniform({50, 33}, type()), gamma = uniform({33}, type());
  Array mean = uniform({50}, f32), rstd = uniform({50}, f32), dx = uniform({50, 33}, type());
  Array dgamma = uniform({33}, f32), dbeta = uniform({33}, f32);
  expectSameBits(planLayerNormBackward(target(), dout, x, gamma, mean, rstd, dx, dgamma, dbeta, {true, true}, {},
                                       LayerNormBackwardConfig{.block = 2, .rows = 8}),
                 {&dx, &dgamma, &dbeta});
}

KILN_ON_MACHINES(LayerNormTest);

} // namespace
} // namespace kiln
