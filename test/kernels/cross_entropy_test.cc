// Cross-entropy and its gradient in place, compared with double precision, with padded vocabularies and ignored
// targets.
//
// Tolerances: exp of a difference d has the relative error |d| · 2 roundoff and the formula's own; the sum (V + 1) ·
// roundoff. In narrow storage the exponentials are computed twice from the same stored logits, which adds no error.

#include "kernels/cross_entropy.h"
#include "test/expect_error.h"
#include "test/kernels/harness.h"

#include <cmath>

namespace kiln {
namespace {

class CrossEntropyTest : public KernelTest {
protected:
  static constexpr int64_t N = 5;
  static constexpr float scale = 0.25f;

  struct Reference {
    std::vector<Want> losses, gradient;
    std::vector<double> hits;
  };
  Reference reference(const Array &logits, const Array &targets, int64_t V, int64_t padded, int64_t ignore,
                      double smoothing = 0) {
    Reference r;
    for (int64_t n = 0; n < N; ++n) {
      const double *row = &logits.values[n * padded];
      double top = -INFINITY, low = INFINITY, total = 0;
      for (int64_t v = 0; v < V; ++v)
        top = std::max(top, row[v]), low = std::min(low, row[v]);
      for (int64_t v = 0; v < V; ++v)
        total += std::exp(row[v] - top);
      const bool ignored = targets[n] == ignore;
      const double error = (V + 4 * (std::abs(top) + std::abs(low)) + 8) * roundoff + 2 * transcendental;
      double mean = 0; // of the logits
      for (int64_t v = 0; v < V; ++v)
        mean += row[v] / static_cast<double>(V);
      if (ignored)
        r.losses.push_back({0, 0});
      else
        r.losses.push_back({top + std::log(total) - (1 - smoothing) * row[int64_t(targets[n])] - smoothing * mean,
                            error + 4 * roundoff * (2 * std::abs(top) + std::abs(low) + std::log(total))});
      r.hits.push_back(!ignored && std::max_element(row, row + V) - row == targets[n]);
      for (int64_t v = 0; v < padded; ++v) {
        const double p = v < V ? std::exp(row[v] - top) / total : 0;
        const double hit = v < V ? (1 - smoothing) * (v == targets[n]) + smoothing / static_cast<double>(V) : 0;
        r.gradient.push_back({ignored ? 0 : (p - hit) * scale, ignored ? 0 : (p * error + 2 * roundoff * hit) * scale});
      }
    }
    return r;
  }

  /// Rows read in tiles, the padding by itself; in tiles with the padding; and at once.
  static std::vector<CrossEntropyConfig> configs(int64_t padded) {
    return {{.block = 64, .rows = 2},
            {.block = 64, .rows = 2, .padded = true},
            {.block = static_cast<int>(padded), .rows = 2, .padded = true, .whole = true}};
  }
};

// Vocabularies below, at and above a block, padded and not, one or several rows a program.
TEST_P(CrossEntropyTest, LossesAndGradientInPlace) {
  for (const auto &[V, padded] : {std::pair<int64_t, int64_t>{1, 1}, {50, 64}, {64, 64}, {65, 130}, {300, 301}}) {
    Array logits = uniform({N, padded}, type(), 8), targets = integers({N}, i32, 0), losses = unwritten({N}, f32);
    for (int64_t n = 0; n < N; ++n)
      targets.values[n] = n == 2 ? ignoreIndex : n == 3 ? V - 1 : n % V;
    targets.reset();
    const Reference want = reference(logits, targets, V, padded, ignoreIndex);
    for (const CrossEntropyConfig &config : configs(padded)) {
      SCOPED_TRACE(testing::Message() << "V " << V << " of " << padded << " " << config.padded << config.whole);
      losses.reset();
      logits.reset();
      run(planCrossEntropyLoss(target(), logits, targets, losses, V, ignoreIndex, {}, config));
      expectClose("losses alone", losses, want.losses);
      expectEqual("logits, only read", logits.read(), logits.values);
      losses.reset();
      run(planCrossEntropy(target(), logits, targets, losses, V, scale, ignoreIndex, {}, {}, config));
      expectClose("losses", losses, want.losses);
      expectClose("gradient", logits, want.gradient);
    }
  }
}

// With label smoothing, the loss and its gradient have a share of the mean over all columns. The mean excludes padding
// columns, also those of a tile past the end of the vocabulary.
TEST_P(CrossEntropyTest, LabelSmoothing) {
  for (const auto &[V, padded] : {std::pair<int64_t, int64_t>{1, 1}, {50, 64}, {65, 130}})
    for (const float smoothing : {0.125f, 1.0f}) {
      Array logits = uniform({N, padded}, type(), 8), losses = unwritten({N}, f32);
      const auto columns = static_cast<double>(V);
      Array targets = array({N}, i32, {0, std::floor(columns / 2), ignoreIndex, columns - 1, 0});
      const Reference want = reference(logits, targets, V, padded, ignoreIndex, smoothing);
      SCOPED_TRACE(testing::Message() << "V " << V << " of " << padded << ", smoothing " << smoothing);
      for (const CrossEntropyConfig &config : configs(padded)) {
        losses.reset();
        logits.reset();
        run(planCrossEntropyLoss(target(), logits, targets, losses, V, ignoreIndex, {.smoothing = smoothing}, config));
        expectClose("losses alone", losses, want.losses);
        losses.reset();
        run(planCrossEntropy(target(), logits, targets, losses, V, scale, ignoreIndex, {}, {.smoothing = smoothing},
                             config));
        expectClose("losses", losses, want.losses);
        expectClose("gradient", logits, want.gradient);
      }
    }
}

// A row is a hit if its largest logit is the target's; of several equal ones the first counts. Losses and gradients do
// not change.
TEST_P(CrossEntropyTest, HitsAreCounted) {
  const int64_t V = 70, rows = 8;
  Array drawn = integers({rows, V}, type(), 3); // from −3 to 3, so that each row's maximum is there several times
  for (int64_t v = 0; v < V; ++v)
    drawn.values[7 * V + v] = -INFINITY; // no column holds a maximum that is a number
  drawn.values[7 * V + 3] = 1;
  drawn.reset();
  std::vector<double> first(rows), second(rows), wantFirst(rows, 1), wantSecond(rows, 0);
  for (int64_t n = 0; n < rows; ++n) {
    const double *row = &drawn.values[n * V];
    first[n] = std::max_element(row, row + V) - row;
    second[n] = n < 7 ? std::find(row + int64_t(first[n]) + 1, row + V, row[int64_t(first[n])]) - row : 4;
    if (second[n] == V)
      second[n] = first[n] == 0;
  }
  first[2] = second[2] = ignoreIndex;
  wantFirst[2] = 0;
  for (const auto &[at, want] : {std::pair(first, wantFirst), {second, wantSecond}}) {
    Array logits = array({rows, V}, type(), drawn.values), plain = array({rows, V}, type(), drawn.values);
    Array targets = array({rows}, i32, at), losses = unwritten({rows}, f32), other = unwritten({rows}, f32);
    Array hits = unwritten({rows}, f32);
    for (const CrossEntropyConfig &config : configs(V)) {
      for (Array *each : {&logits, &plain, &hits})
        each->reset();
      run(planCrossEntropyLoss(target(), logits, targets, losses, V, ignoreIndex, {.correct = hits.ref()}, config));
      expectEqual("hits beside losses alone", hits.read(), want);
      hits.reset();
      run(planCrossEntropy(target(), logits, targets, losses, V, scale, ignoreIndex, {}, {.correct = hits.ref()},
                           config));
      run(planCrossEntropy(target(), plain, targets, other, V, scale, ignoreIndex, {}, {}, config));
      expectEqual("hits", hits.read(), want);
      EXPECT_TRUE(logits.bytes() == plain.bytes());
      EXPECT_TRUE(losses.bytes() == other.bytes());
    }
  }
}

// A scale in memory multiplies the gradient and not the losses; powers of two do so exactly.
TEST_P(CrossEntropyTest, TheLossScaleIsReadFromMemory) {
  const int64_t V = 70;
  Array logits = uniform({N, V}, type(), 8), targets = array({N}, i32, {0, 1, ignoreIndex, 69, 5});
  Array plain = array({N, V}, type(), logits.values), losses = unwritten({N}, f32), other = unwritten({N}, f32);
  Array lossScale = array({1}, f32, {64});
  const CrossEntropyConfig config = {.block = 64};
  run(planCrossEntropy(target(), logits, targets, losses, V, scale / 64, ignoreIndex, lossScale.ref(), {}, config));
  run(planCrossEntropy(target(), plain, targets, other, V, scale, ignoreIndex, {}, {}, config));
  EXPECT_TRUE(logits.bytes() == plain.bytes());
  EXPECT_TRUE(losses.bytes() == other.bytes());
}

// Padding may hold anything, even NaN.
TEST_P(CrossEntropyTest, PaddingIsNeverRead) {
  const int64_t V = 70, padded = 80;
  Array clean = uniform({N, padded}, type(), 8), targets = array({N}, i32, {0, 1, 2, 69, 5});
  Array dirty = array({N, padded}, type(), clean.values), losses = unwritten({N}, f32), other = unwritten({N}, f32);
  for (int64_t i = 0; i < N * padded; ++i)
    dirty.values[i] = i % padded < V ? clean[i] : NAN;
  dirty.reset();
  for (const CrossEntropyConfig &config : configs(padded)) {
    clean.reset();
    dirty.reset();
    run(planCrossEntropy(target(), clean, targets, losses, V, scale, ignoreIndex, {}, {}, config));
    run(planCrossEntropy(target(), dirty, targets, other, V, scale, ignoreIndex, {}, {}, config));
    EXPECT_TRUE(clean.bytes() == dirty.bytes());
    EXPECT_TRUE(losses.bytes() == other.bytes());
  }
}

// The ignored index may be a column of the vocabulary.
TEST_P(CrossEntropyTest, AnyIndexCanBeIgnored) {
  const int64_t V = 20;
  Array logits = uniform({N, V}, type(), 8), targets = array({N}, i32, {0, 3, 0, 19, 0}), losses = unwritten({N}, f32);
  const Reference want = reference(logits, targets, V, V, 0);
  run(planCrossEntropy(target(), logits, targets, losses, V, scale, 0, {}, {}, CrossEntropyConfig{.block = 64}));
  expectClose("losses", losses, want.losses);
  expectClose("gradient", logits, want.gradient);
}

// Logits of ±1000 neither overflow nor lose the loss: one column has probability 1.
TEST_P(CrossEntropyTest, LargeLogitsDoNotOverflow) {
  const int64_t V = 40;
  std::vector<double> values(N * V, -1000);
  for (int64_t n = 0; n < N; ++n)
    values[n * V + n] = 1000;
  Array logits = array({N, V}, type(), values), targets = array({N}, i32, {0, 1, 2, 3, 4}),
        losses = unwritten({N}, f32);
  run(planCrossEntropy(target(), logits, targets, losses, V, scale, ignoreIndex, {}, {},
                       CrossEntropyConfig{.block = 64}));
  expectEqual("losses", losses.read(), std::vector<double>(N, 0));
  expectEqual("gradient", logits.read(), std::vector<double>(N * V, 0));
}

// A target outside the vocabulary is reported.
TEST_P(CrossEntropyTest, AForeignTargetFailsTheCheck) {
  Array logits = uniform({N, 20}, type()), targets = array({N}, i32, {0, 1, 18, 3, 4}), losses = unwritten({N}, f32);
  expectError([&] { run(planCrossEntropy(target(), logits, targets, losses, 18, scale)); },
              {"expected a target of the vocabulary"});
}

KILN_ON_MACHINES(CrossEntropyTest);

} // namespace
} // namespace kiln
