// The matrix products against sums in double precision, in all layouts, with every epilogue.
//
// Tolerance: productError(K) · Σ |a · b|, the language's own bound of a `dot`.

#include "test/kernels/harness.h"

#include <cmath>

namespace kiln {
namespace {

class MatmulTest : public KernelTest {
protected:
  using Size = ProductSize;
  /// Multiples of the tile, one less and one more, single rows and columns.
  const std::vector<Size> sizes = {{64, 64, 64}, {65, 33, 17}, {1, 70, 40}, {31, 1, 33}, {40, 96, 1}};
  MatmulConfig small() const { return {.bm = 32, .bn = 32, .bk = 16, .precision = precision()}; }
  MatmulConfig smallParts() const {
    MatmulConfig config = small();
    config.split = 32;
    return config;
  }

  void expectBiasAndResidual(Size s, const MatmulConfig &config);
  void expectGradientThroughGelu(Size s, const MatmulConfig &config);
};

/// Products of warpgroups, whose epilogues have their operands loaded ahead.
class WarpgroupsTest : public MatmulTest {
protected:
  /// Tiles that the matrices cut, and fewer iterations than stages.
  const std::vector<Size> cut = {{200, 320, 128}, {72, 192, 64}};
  MatmulConfig grouped() const { return {.bm = 128, .bn = 192, .bk = 64, .warps = 8, .stages = 4}; }
};
const std::vector<Machine> warpgroupMachines = {{"simulator:sm_90a", bf16}, {"simulator:sm_90a", f16}};

constexpr Layout layouts[] = {Layout::nn, Layout::nt, Layout::tn};

void MatmulTest::expectBiasAndResidual(Size s, const MatmulConfig &config) {
  Array a = integers({s.M, s.K}, type(), 1), b = integers({s.K, s.N}, type(), 1), bias = integers({s.N}, type(), 9);
  Array c = unwritten({s.M, s.N}, type()), residual = integers({s.M, s.N}, type(), 9);
  run(planMatmulBias(target(), Layout::nn, a, b, bias, c, config));
  run(planMatmulResidual(target(), Layout::nn, a, b, bias, residual, residual, config));
  std::vector<double> want, wantResidual;
  const std::vector<Want> sum = product(Layout::nn, a, b, s);
  for (size_t i = 0; i < sum.size(); ++i) {
    want.push_back(sum[i].value + bias[i % s.N]);
    wantResidual.push_back(want.back() + residual[i]);
  }
  expectEqual("bias", c.read(), want);
  expectEqual("residual", residual.read(), wantResidual);
}

void MatmulTest::expectGradientThroughGelu(Size s, const MatmulConfig &config) {
  Array a = uniform({s.M, s.K}, type()), b = uniform({s.N, s.K}, type()), preact = uniform({s.M, s.N}, type(), 4);
  run(planMatmulGeluBackward(target(), Layout::nt, a, b, preact, preact, config));
  std::vector<Want> want = product(Layout::nt, a, b, s);
  for (size_t i = 0; i < want.size(); ++i) {
    const double slope = geluSlopeOf(preact[i]);
    // The slope's own error: a few roundings of terms no larger than |x| · 2u' ≈ 10 for |x| ≤ 4.
    want[i].slack = want[i].slack * std::abs(slope) + std::abs(want[i].value) * 10 * 2 * transcendental;
    want[i].value *= slope;
  }
  expectClose("c", preact, want);
}

// Small integers: every layout and every edge is exact.
TEST_P(MatmulTest, ProductsOfIntegersAreExact) {
  for (const Layout layout : layouts)
    for (const Size s : sizes) {
      Array a = integers(shapeA(layout, s), type(), 1), b = integers(shapeB(layout, s), type(), 1);
      Array c = unwritten({s.M, s.N}, type());
      run(planMatmul(target(), layout, a, b, c, false, small()));
      const std::vector<double> want = exactProduct(layout, a, b, s);
      SCOPED_TRACE(testing::Message() << "layout " << static_cast<int>(layout) << " " << s.M << "x" << s.N << "x"
                                      << s.K);
      expectEqual("c", c.read(), want);
    }
}

// Every tile is some program's, however many rows of tiles a band has.
TEST_P(MatmulTest, BandsCoverTheTiles) {
  const Size s{125, 70, 33};
  Array a = integers(shapeA(Layout::nn, s), type(), 1), b = integers(shapeB(Layout::nn, s), type(), 1);
  const std::vector<double> want = exactProduct(Layout::nn, a, b, s);
  for (const int64_t band : {1, 2, 4}) {
    Array c = unwritten({s.M, s.N}, type());
    Plan plan = planMatmul(target(), Layout::nn, a, b, c, false, small());
    plan.launches[0].grid = programs(band, 3, 4 / band);
    run(plan);
    SCOPED_TRACE(testing::Message() << "bands of " << band);
    expectEqual("c", c.read(), want);
  }
}

// Persistent programs compute every tile, in bands that cut the rows of tiles, with more and with fewer programs than
// tiles.
TEST_P(MatmulTest, PersistentProgramsCoverTheTiles) {
  const Size s{125, 70, 33};
  Array a = integers(shapeA(Layout::nn, s), type(), 1), b = integers(shapeB(Layout::nn, s), type(), 1);
  const std::vector<double> want = exactProduct(Layout::nn, a, b, s);
  for (const int64_t band : {1, 3, 4})
    for (const int64_t count : {1, 5, 12, 17}) {
      MatmulConfig config = small();
      config.groupM = band;
      Array c = unwritten({s.M, s.N}, type());
      Plan plan = planMatmul(target(), Layout::nn, a, b, c, false, config);
      plan.launches[0].grid = programs(count);
      run(plan);
      SCOPED_TRACE(testing::Message() << count << " programs, bands of " << band);
      expectEqual("c", c.read(), want);
    }
}

// Random numbers, with the tile sizes that a plan picks by itself.
TEST_P(MatmulTest, ProductsOfRandomNumbersStayWithinTheSumsBound) {
  for (const Layout layout : layouts)
    for (const Size s : {Size{70, 45, 130}, Size{64, 128, 48}}) {
      Array a = uniform(shapeA(layout, s), type()), b = uniform(shapeB(layout, s), type());
      Array c = unwritten({s.M, s.N}, f32);
      run(planMatmul(target(), layout, a, b, c));
      expectClose("c", c, product(layout, a, b, s));
    }
}

// Every tile shape gives the same bits for one BK, because the order of a sum depends on BK alone.
TEST_P(MatmulTest, ResultsDoNotDependOnBMAndBN) {
  const Size s = {70, 45, 100};
  MatmulConfig large = small();
  large.bm = 48, large.bn = 64;
  Array a = uniform({s.M, s.K}, type()), b = uniform({s.K, s.N}, type()), c = unwritten({s.M, s.N}, f32);
  run(planMatmul(target(), Layout::nn, a, b, c, false, small()));
  const std::vector<char> first = c.bytes();
  run(planMatmul(target(), Layout::nn, a, b, c, false, large));
  EXPECT_TRUE(first == c.bytes());
}

// Matrices may be parts of wider ones, whose other columns are neither read nor written.
TEST_P(MatmulTest, RowStridesAreFree) {
  const Size s = {33, 20, 40};
  Array a = integers({s.M, s.K + 5}, type(), 1), b = integers({s.K, s.N + 3}, type(), 1);
  Array c = integers({s.M, s.N + 9}, type(), 3);
  run(planMatmul(target(), Layout::nn, a.ref().slice(1, 2, s.K), b.ref().slice(1, 3, s.N), c.ref().slice(1, 4, s.N),
                 false, small()));
  std::vector<double> want = c.values;
  for (int64_t m = 0; m < s.M; ++m)
    for (int64_t n = 0; n < s.N; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < s.K; ++k)
        sum += a[m * (s.K + 5) + 2 + k] * b[k * (s.N + 3) + 3 + n];
      want[m * (s.N + 9) + 4 + n] = sum;
    }
  expectEqual("c", c.read(), want);
}

// C += A · B.
TEST_P(MatmulTest, AccumulatesIntoC) {
  const Size s = {33, 20, 40};
  Array a = integers({s.M, s.K}, type(), 1), b = integers({s.K, s.N}, type(), 1), c = integers({s.M, s.N}, type(), 9);
  run(planMatmul(target(), Layout::nn, a, b, c, true, small()));
  std::vector<double> want = c.values;
  const std::vector<Want> sum = product(Layout::nn, a, b, s);
  for (size_t i = 0; i < want.size(); ++i)
    want[i] += sum[i].value;
  expectEqual("c", c.read(), want);
}

// C = A · B + bias, and with the residual in C's own place.
TEST_P(MatmulTest, AddsBiasAndResidual) {
  for (const Size s : {Size{33, 20, 40}, Size{64, 32, 16}})
    expectBiasAndResidual(s, small());
}

// C = gelu(A · B + bias), and the pre-activation. |gelu'| ≤ 1.13, so the sum's error, and its rounding to C's type,
// grow by at most that. The formula itself has about ten roundings of values of the argument's size.
TEST_P(MatmulTest, AppliesGelu) {
  const Size s = {33, 40, 24};
  Array a = uniform({s.M, s.K}, type()), b = uniform({s.K, s.N}, type()), bias = uniform({s.N}, type());
  Array preact = unwritten({s.M, s.N}, type()), c = unwritten({s.M, s.N}, type()),
        alone = unwritten({s.M, s.N}, type());
  run(planMatmulGelu(target(), Layout::nn, a, b, bias, preact.ref(), c, small()));
  run(planMatmulGelu(target(), Layout::nn, a, b, bias, {}, alone, small()));
  std::vector<Want> before = product(Layout::nn, a, b, s), after;
  for (size_t i = 0; i < before.size(); ++i) {
    before[i].value += bias[i % s.N];
    before[i].slack += 2 * roundoff;
    const double size = std::abs(before[i].value);
    after.push_back(
        {geluOf(before[i].value), 1.13 * (before[i].slack + unit(type()) * size) + 10 * transcendental * size});
  }
  expectClose("preact", preact, before);
  expectClose("c", c, after);
  EXPECT_TRUE(c.bytes() == alone.bytes());
}

// C = (A · Bᵀ) ∘ gelu'(preact), in the place of the pre-activation.
TEST_P(MatmulTest, CarriesAGradientThroughGelu) { expectGradientThroughGelu({33, 40, 24}, small()); }

// dW = xᵀ · dy and db in one launch; again with accumulation.
TEST_P(MatmulTest, WeightGradientWithColumnSums) {
  for (const Size s : {Size{33, 70, 50}, Size{64, 32, 16}}) {
    Array x = integers({s.K, s.M}, type(), 1), dy = integers({s.K, s.N}, type(), 1);
    Array dw = unwritten({s.M, s.N}, f32), db = unwritten({s.N}, f32);
    run(planWeightGradient(target(), x, dy, dw, db.ref(), false, small()));
    run(planWeightGradient(target(), x, dy, dw, db.ref(), true, small()));
    std::vector<double> want, columns(s.N, 0);
    for (const Want &w : product(Layout::tn, x, dy, s))
      want.push_back(2 * w.value);
    for (int64_t i = 0; i < s.K * s.N; ++i)
      columns[i % s.N] += 2 * dy[i];
    expectEqual("dw", dw.read(), want);
    expectEqual("db", db.read(), columns);
  }
}

// K split among programs: the same sums, with and without column sums, with and without accumulation.
TEST_P(MatmulTest, SplitWeightGradientEqualsTheWhole) {
  const Size s = {20, 40, 100};
  Array x = integers({s.K, s.M}, type(), 1), dy = integers({s.K, s.N}, type(), 1);
  for (const bool accumulate : {false, true})
    for (const bool columns : {false, true}) {
      Array dw = integers({s.M, s.N}, f32, 5), db = integers({s.N}, f32, 5);
      const Plan plan = planWeightGradient(target(), x, dy, dw, columns ? std::optional(db.ref()) : std::nullopt,
                                           accumulate, smallParts());
      EXPECT_EQ(plan.launches[0].grid[2], 4);
      run(plan);
      const std::vector<Want> sum = product(Layout::tn, x, dy, s);
      std::vector<double> want(sum.size()), wantColumns(s.N, 0);
      for (size_t i = 0; i < sum.size(); ++i)
        want[i] = sum[i].value + (accumulate ? dw[i] : 0);
      for (int64_t i = 0; i < s.K * s.N; ++i)
        wantColumns[i % s.N] += dy[i];
      for (int64_t n = 0; n < s.N; ++n)
        wantColumns[n] = columns ? wantColumns[n] + (accumulate ? db[n] : 0) : db[n];
      expectEqual("dw", dw.read(), want);
      expectEqual("db", db.read(), wantColumns);
    }
}

// Several weights of one K at once, whole and split, with and without accumulation.
TEST_P(MatmulTest, GradientsOfSeveralWeights) {
  const std::vector<Size> all = {{20, 40, 100}, {33, 17, 100}, {64, 32, 100}};
  for (const MatmulConfig &config : {small(), smallParts()})
    for (const bool accumulate : {false, true}) {
      std::vector<Array> x, dy, dw, db;
      std::vector<WeightGradient> gradients;
      for (const Size &s : all) {
        x.push_back(integers({s.K, s.M}, type(), 1)), dy.push_back(integers({s.K, s.N}, type(), 1));
        dw.push_back(integers({s.M, s.N}, f32, 5)), db.push_back(integers({s.N}, f32, 5));
        gradients.push_back({x.back(), dy.back(), dw.back(), db.back().ref()});
      }
      run(planWeightGradients(target(), gradients, accumulate, config));
      for (size_t at = 0; at < all.size(); ++at) {
        const Size s = all[at];
        std::vector<double> want, columns(s.N, 0);
        for (const Want &sum : product(Layout::tn, x[at], dy[at], s))
          want.push_back(sum.value + (accumulate ? dw[at][want.size()] : 0));
        for (int64_t n = 0; n < s.N && accumulate; ++n)
          columns[n] = db[at][n];
        for (int64_t i = 0; i < s.K * s.N; ++i)
          columns[i % s.N] += dy[at][i];
        expectEqual("dw", dw[at].read(), want);
        expectEqual("db", db[at].read(), columns);
      }
    }
}

// Partial sums are added in a fixed order: any number of threads gives the same bits.
TEST_P(MatmulTest, SplitWeightGradientIsDeterministic) {
  Array x = uniform({100, 20}, type()), dy = uniform({100, 40}, type());
  Array dw = uniform({20, 40}, f32), db = uniform({40}, f32);
  expectSameBits(planWeightGradient(target(), x, dy, dw, db.ref(), true, smallParts()), {&dw, &db});
}

TEST_P(WarpgroupsTest, AddsBiasAndResidual) {
  for (const Size &s : cut)
    expectBiasAndResidual(s, grouped());
}

TEST_P(WarpgroupsTest, CarriesAGradientThroughGelu) {
  for (const Size &s : cut)
    expectGradientThroughGelu(s, grouped());
}

// The first operands of a persistent program's next tile are loaded while this tile's results pass through shared
// memory. The bits are those of one program for each tile.
TEST_P(WarpgroupsTest, PersistentProgramsHaveTheSameBits) {
  for (const Size &s : cut)
    for (const int stages : {2, 3, 4}) {
      MatmulConfig config = grouped();
      config.stages = stages;
      Array a = uniform({s.M, s.K}, type()), b = uniform({s.K, s.N}, type()), bias = uniform({s.N}, type());
      Array c = unwritten({s.M, s.N}, type()), preact = unwritten({s.M, s.N}, type());
      std::vector<std::vector<char>> results;
      for (const int64_t band : {0, 1, 2}) {
        config.groupM = band;
        for (Plan plan : {planMatmulBias(target(), Layout::nn, a, b, bias, c, config),
                          planMatmulGelu(target(), Layout::nn, a, b, bias, preact.ref(), c, config)}) {
          if (band > 0)
            plan.launches[0].grid = programs(band);
          run(plan);
          results.push_back(c.bytes());
        }
        results.push_back(preact.bytes());
      }
      SCOPED_TRACE(testing::Message() << s.M << "x" << s.N << "x" << s.K << ", " << stages << " stages");
      for (size_t i = 3; i < results.size(); ++i)
        EXPECT_TRUE(results[i] == results[i % 3]);
    }
}

KILN_ON_PRODUCT_MACHINES(MatmulTest);
KILN_ON_THESE_MACHINES(WarpgroupsTest, warpgroupMachines);

} // namespace
} // namespace kiln
