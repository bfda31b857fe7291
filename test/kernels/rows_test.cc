// The small kernels: add, gelu, softmax and the ordered sums.

#include "kernels/add.h"
#include "kernels/gelu.h"
#include "kernels/rounding.h"
#include "kernels/softmax.h"
#include "kernels/sum.h"
#include "test/devices.h"
#include "test/kernels/harness.h"

#include <cmath>

namespace kiln {
namespace {

using RowsTest = KernelTest;

// Lengths around a block, and in place.
TEST_P(RowsTest, AddsVectorsOfAnyLength) {
  for (const int64_t n : {1, 63, 64, 65, 200}) {
    Array x = integers({n}, type(), 100), y = integers({n}, type(), 100);
    run(planAdd(target(), x, y, x, AddConfig{.block = 64}));
    std::vector<double> want;
    for (int64_t i = 0; i < n; ++i)
      want.push_back(x[i] + y[i]);
    expectEqual("x", x.read(), want);
  }
}

// From far left, where gelu vanishes, to far right, where it is the identity. The formula's own error is about ten
// roundings of x. The exponent −2u has a relative error of 4 roundoff, so exp2 has one of 4 roundoff · |2u|. That
// matters only if exp2 is neither far below nor far above 1: there |2u| < 20.
TEST_P(RowsTest, GeluAndItsDerivative) {
  std::vector<double> points;
  for (double x = -12; x <= 12; x += 0.13)
    points.push_back(x);
  for (const double x : {0.0, -0.0, 1e-20, -1e-20, 100.0, -100.0, 6e4, -6e4})
    points.push_back(x);
  const int64_t n = points.size();
  Array x = array({n}, type(), points), out = unwritten({n}, type());
  Array dout = uniform({n}, type()), dx = unwritten({n}, type());
  run(planGelu(target(), x, out, GeluConfig{.block = 64}));
  run(planGeluBackward(target(), x, dout, dx, GeluConfig{.block = 64}));
  std::vector<Want> want, slope;
  for (int64_t i = 0; i < n; ++i) {
    const double v = x[i], u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v), s = 1 / (1 + std::exp(-2 * u));
    const double du = 2 * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * v * v);
    const double error = 20 * transcendental; // of s, relative
    want.push_back({v * s, std::abs(v) * (s * error + 0x1p-126)});
    const double terms = s + std::abs(v) * du * s * (1 - s);
    // Near s = 1 the difference 1 − s has an absolute error, the rounding of s.
    slope.push_back({dout[i] * (s + v * du * s * (1 - s)),
                     std::abs(dout[i]) * (terms * error + (1 + std::abs(v) * du) * 0x1p-126 +
                                          (s < 1 - 1e-7 ? std::abs(v) * du * s * 2 * roundoff : 0))});
  }
  expectClose("gelu", out, want);
  expectClose("gelu'", dx, slope);
}

// Rows of any width, far from zero: the maximum must be subtracted first. exp of a difference d has the relative error
// |d| · roundoff, with d ≤ 40 here.
TEST_P(RowsTest, SoftmaxOfRows) {
  for (const int64_t C : {1, 17, 64, 100}) {
    const int64_t N = 7;
    Array x = uniform({N, C}, type(), 20), out = unwritten({N, C}, type());
    for (double &value : x.values)
      value += 1000;
    x = array({N, C}, type(), x.values);
    run(planSoftmax(target(), x, out));
    std::vector<Want> want;
    for (int64_t n = 0; n < N; ++n) {
      double top = -INFINITY, total = 0;
      for (int64_t c = 0; c < C; ++c)
        top = std::max(top, x[n * C + c]);
      for (int64_t c = 0; c < C; ++c)
        total += std::exp(x[n * C + c] - top);
      for (int64_t c = 0; c < C; ++c) {
        const double p = std::exp(x[n * C + c] - top) / total;
        want.push_back({p, p * ((C + 90) * roundoff + 2 * transcendental)});
      }
    }
    expectClose("softmax", out, want);
  }
}

// Partials of a matrix, one at a time: the sum in the order of the parts, in f32, equals the same loop on the host to
// the bit.
TEST_P(RowsTest, PartialsAreSummedInOrder) {
  const int64_t P = 5, M = 3, N = 70;
  Array partials = uniform({P, M, N}, f32, 100);
  for (const bool accumulate : {false, true}) {
    Array out = uniform({M, N}, f32);
    run({.launches = {launchSum(target(), partials.ref(), out, accumulate, SumConfig{.rows = 2, .block = 64})}});
    std::vector<double> want;
    for (int64_t i = 0; i < M * N; ++i) {
      float sum = 0;
      for (int64_t p = 0; p < P; ++p)
        sum += static_cast<float>(partials[p * M * N + i]);
      want.push_back(accumulate ? sum + static_cast<float>(out[i]) : sum);
    }
    expectEqual("out", out.read(), want);
  }
}

// Two sums in one launch, of different widths: each has the bits of a separate launch.
TEST_P(RowsTest, TwoSumsShareALaunch) {
  const int64_t P = 5, M = 3, N = 70;
  Array partials = uniform({P, M, N}, f32, 100), more = uniform({P, 1, N}, f32, 100);
  for (const bool accumulate : {false, true}) {
    Array out = uniform({M, N}, f32), other = array({M, N}, f32, out.values);
    Array moreOut = uniform({1, N}, f32), moreOther = array({1, N}, f32, moreOut.values);
    const std::vector<Launch> launches =
        launchSums(target(), {partials.ref(), out.ref()}, {more.ref(), moreOut.ref()}, accumulate);
    EXPECT_EQ(launches.size(), 1u);
    run({.launches = launches});
    run({.launches = {launchSum(target(), partials.ref(), other, accumulate),
                      launchSum(target(), more.ref(), moreOther, accumulate)}});
    EXPECT_TRUE(out.bytes() == other.bytes());
    EXPECT_TRUE(moreOut.bytes() == moreOther.bytes());
  }
}

// Several side by side: of integers the sum is exact, whether the parts fill the last tile or not.
TEST_P(RowsTest, PartialsAreSummedSideBySide) {
  const int64_t M = 3, N = 70;
  for (const int64_t P : {1, 5, 8}) {
    Array partials = integers({P, M, N}, f32, 100), out = integers({M, N}, f32, 100);
    run({.launches = {launchSum(target(), partials.ref(), out, true, SumConfig{.rows = 2, .block = 64, .unroll = 4})}});
    std::vector<double> want = out.values;
    for (int64_t i = 0; i < P * M * N; ++i)
      want[i % (M * N)] += partials[i];
    expectEqual("out", out.read(), want);
  }
}

// A total of integers is exact in any order.
TEST_P(RowsTest, TotalOfAVector) {
  for (const int64_t n : {1, 64, 65, 300}) {
    Array x = integers({n}, type(), 50), out = unwritten({1}, f32);
    run(planTotal(target(), x, out, 0.5f, /*accumulate=*/false, TotalConfig{.block = 64}));
    double sum = 0;
    for (const double value : x.values)
      sum += value;
    expectEqual("total", out.read(), {sum / 2});
    run(planTotal(target(), x, out, 2, /*accumulate=*/true));
    expectEqual("total", out.read(), {sum / 2 + 2 * sum});
  }
}

KILN_ON_MACHINES(RowsTest);

// --- Stochastic rounding ---------------------------------------------------------------------------------------------

// Stochastic rounding compared with its definition: the nearest number, or the neighbour on the other side of x if the
// random number is below the fraction of the way to it.

static constexpr int block = 64;

/// out = x, rounded with the numbers in `uniform`. All (N).
void roundAll(View x, View uniform, View out) {
  Tile n = program_id() * block;
  store(out, {n}, roundStochastically(load(x, {n}, {block}), out.type(), load(uniform, {n}, {block})));
}
const Kernel roundAllKernel = kernel("round_all", roundAll, {"x (N)", "uniform (N)", "out (N)"});

class RoundingTest : public KernelTest {
protected:
  /// `x` rounded to nearest, even on ties.
  double nearest(double x) const {
    char bytes[8];
    fromDoubles({x}, type(), bytes);
    return toDoubles(bytes, type(), 1)[0];
  }
  /// The definition, in exact arithmetic: numbers of the type are multiples of their unit, which is a power of two.
  double rounded(double x, double uniform) const {
    const int digits = type() == bf16 ? 8 : 11, least = type() == bf16 ? -126 : -14;
    const double place = std::ldexp(1.0, std::max(x == 0 ? least : std::ilogb(x), least) - digits + 1);
    const double below = std::floor(x / place) * place, above = std::ceil(x / place) * place, near = nearest(x);
    const double other = near == below ? above : below;
    if (std::isinf(near) || std::isinf(nearest(other)))
      return near;
    return uniform * place < std::abs(x - near) ? other : near;
  }
  std::vector<double> run(const std::vector<double> &x, const std::vector<double> &uniform) {
    const int64_t n = std::ssize(x);
    Array from = array({n}, f32, x), chances = array({n}, f32, uniform), to = unwritten({n}, type());
    KernelTest::run({.launches = {{&roundAllKernel, "", programs(cdiv(n, block)), {from, chances, to}}}});
    return to.read();
  }
};

// Numbers of all magnitudes, down to those below the smallest normal f16, of both signs, next to powers of two, where
// the units change, and exactly half-way; with random numbers that are multiples of 2⁻²⁴, including 0.
TEST_P(RoundingTest, IsItsDefinition) {
  std::vector<double> x, uniform;
  std::uniform_real_distribution<double> number(-1, 1);
  for (int exponent = -27; exponent <= 15; ++exponent)
    for (int i = 0; i < 48; ++i) {
      const double size = std::ldexp(1.0, exponent), step = std::ldexp(1.0, exponent - 22);
      const double value = i < 16   ? number(random) * size
                           : i < 32 ? size + (i - 24) * step
                                    : nearest(number(random) * size) * (1 + unit(type()) / 2 * (i % 3));
      x.push_back(static_cast<float>(value));
      uniform.push_back(i % 8 == 0 ? 0 : static_cast<double>(random() >> 8) * 0x1p-24);
    }
  std::vector<double> want;
  for (size_t i = 0; i < x.size(); ++i)
    want.push_back(rounded(x[i], uniform[i]));
  expectEqual("rounded", run(x, uniform), want);
}

// Representable numbers are unchanged. A number that is finite when rounded to nearest stays finite: 65519 is the
// second last f32 that f16 rounds to 65504. Infinity and NaN are unchanged, too.
TEST_P(RoundingTest, KeepsWhatIsExactOrLast) {
  const double last = type() == f16 ? 65504 : 0x1.fep127, above = type() == f16 ? 65519 : 0x1.feep127;
  const std::vector<double> x = {0, 1, -1, 1.5, last, -last, above, -above, infinity, -infinity};
  std::vector<double> want = x;
  want[6] = last, want[7] = -last;
  for (const double chance : {0.0, 0.5, 1 - 0x1p-24})
    EXPECT_EQ(run(x, std::vector<double>(x.size(), chance)), want) << chance;
  EXPECT_TRUE(std::isnan(run({nan}, {0.5})[0]));
}

KILN_ON_THESE_MACHINES(RoundingTest, narrowMachines("RoundingTest"));

} // namespace
} // namespace kiln
