// Flash attention compared with the plain formulas in double precision, at lengths around the tile sizes.

#include "kernels/attention.h"
#include "test/kernels/attention_problem.h"

#include <cmath>

namespace kiln {
namespace {

/// Extents of an attention problem.
struct Size {
  int64_t B, H, T, D;
  int64_t count() const { return B * H * T * D; }
};

class AttentionTest : public KernelTest {
protected:
  /// q, k, v, o, dout, lse and the gradients of one problem. q, k, v and their gradients are views into packed (B, T,
  /// 3, H, D) arrays, o and dout into (B, T, H, D), as in the model.
  struct Problem {
    Size s;
    bool causal;
    Array qkv, o, dout, lse, dqkv;
    float scale() const { return static_cast<float>(1 / std::sqrt(double(s.D))); }
    static TensorRef heads(const TensorRef &rows) { return rows.permute({0, 2, 1, 3}); }
    TensorRef part(const Array &packed, int i) const { return heads(packed.ref().select(2, i)); }
  };
  Problem problem(Size s, bool causal) {
    return {s,
            causal,
            uniform({s.B, s.T, 3, s.H, s.D}, type(), 2),
            unwritten({s.B, s.T, s.H, s.D}, type()),
            uniform({s.B, s.T, s.H, s.D}, type()),
            unwritten({s.B, s.H, s.T}, f32),
            unwritten({s.B, s.T, 3, s.H, s.D}, type())};
  }

  /// The relative error of an operand that is rounded to the storage type.
  double narrow() const { return type() == f32 ? 0 : unit(type()); }
  AttentionConfig tiles(int bm, int bn) const { return {.bm = bm, .bn = bn, .precision = precision()}; }
  Plan forward(const Problem &p, const std::optional<AttentionConfig> &config = {}) {
    return planAttention(target(), p.part(p.qkv, 0), p.part(p.qkv, 1), p.part(p.qkv, 2), Problem::heads(p.o), p.lse,
                         p.scale(), {.causal = p.causal}, config);
  }
  Plan backward(const Problem &p, const std::optional<AttentionConfig> &config = {}) {
    const AttentionSaved saved = {p.part(p.qkv, 0),      p.part(p.qkv, 1), p.part(p.qkv, 2), Problem::heads(p.o), p.lse,
                                  Problem::heads(p.dout)};
    return planAttentionBackward(target(), saved, p.part(p.dqkv, 0), p.part(p.dqkv, 1), p.part(p.dqkv, 2), p.scale(),
                                 {.causal = p.causal}, config);
  }

  /// One head of (B, T, parts, H, D) values as a dense (T, D).
  static std::vector<double> head(const std::vector<double> &values, Size s, int64_t b, int64_t h, int parts,
                                  int part) {
    std::vector<double> dense;
    for (int64_t t = 0; t < s.T; ++t)
      for (int64_t d = 0; d < s.D; ++d)
        dense.push_back(values[(((b * s.T + t) * parts + part) * s.H + h) * s.D + d]);
    return dense;
  }

  /// One head of a problem, with the o that the kernel gave.
  AttentionHead headOf(const Problem &p, int64_t b, int64_t h, const std::vector<double> &o) const {
    const Size s = p.s;
    return {.Tq = s.T,
            .Tk = s.T,
            .D = s.D,
            .q = head(p.qkv.values, s, b, h, 3, 0),
            .k = head(p.qkv.values, s, b, h, 3, 1),
            .v = head(p.qkv.values, s, b, h, 3, 2),
            .o = head(o, s, b, h, 1, 0),
            .dout = head(p.dout.values, s, b, h, 1, 0),
            .scale = p.scale(),
            .seen = [causal = p.causal](int64_t i, int64_t j) { return !causal || j <= i; }};
  }
  void check(Problem &p, const std::optional<AttentionConfig> &config = {});
};

/// Forward and backward of every head.
void AttentionTest::check(Problem &p, const std::optional<AttentionConfig> &config) {
  SCOPED_TRACE(testing::Message() << "T " << p.s.T << " D " << p.s.D << (p.causal ? " causal" : " full"));
  run(forward(p, config));
  run(backward(p, config));
  const std::vector<double> o = p.o.read(), lse = p.lse.read(), gradients = p.dqkv.read();
  for (int64_t b = 0; b < p.s.B; ++b)
    for (int64_t h = 0; h < p.s.H; ++h) {
      const AttentionHead one = headOf(p, b, h, o);
      const AttentionErrors errors = {productError(p.s.D), productError(p.s.T), narrow(), tiny(type())};
      const AttentionForward forward = attentionForward(one, errors);
      expectClose("o", one.o, forward.o, type());
      const auto begin = lse.begin() + (b * p.s.H + h) * p.s.T;
      expectClose("lse", {begin, begin + p.s.T}, forward.lse, f32);
      AttentionBackward backward;
      addAttentionBackward(one, errors, backward);
      expectClose("dq", head(gradients, p.s, b, h, 3, 0), backward.dq, type());
      expectClose("dk", head(gradients, p.s, b, h, 3, 1), backward.dk, type());
      expectClose("dv", head(gradients, p.s, b, h, 3, 2), backward.dv, type());
    }
}

// Every length from 1 to past two tiles of 64, with small tiles: all edges, all numbers of blocks.
TEST_P(AttentionTest, EveryLength) {
  for (const bool causal : {true, false})
    for (int64_t T = 1; T <= 130 && !HasFailure(); ++T) {
      Problem p = problem({1, 1, T, 8}, causal);
      check(p, tiles(16, 16));
    }
}

// With these lengths the backward pass is three launches by blocks.
TEST_P(AttentionTest, EveryLengthByBlocks) {
  AttentionConfig blocks = tiles(16, 16);
  blocks.whole = false;
  for (const bool causal : {true, false})
    for (int64_t T = 1; T <= 130 && !HasFailure(); T += 1 + T / 20) {
      Problem p = problem({1, 1, T, 8}, causal);
      check(p, blocks);
    }
}

// The head sizes in use, and odd ones, with several heads and batches and the tiles that a plan picks.
TEST_P(AttentionTest, EveryHeadSize) {
  for (const bool causal : {true, false})
    for (const Size s :
         {Size{2, 3, 33, 32}, {1, 2, 70, 64}, {1, 1, 65, 80}, {1, 1, 40, 128}, {1, 2, 9, 7}, {1, 1, 20, 1}}) {
      Problem p = problem(s, causal);
      check(p);
    }
}

// Tiles of q and of k need not be equal: blocks on the diagonal then begin between tiles.
TEST_P(AttentionTest, UnequalTiles) {
  for (const AttentionConfig config : {tiles(32, 16), tiles(16, 32), tiles(24, 16)}) {
    Problem p = problem({1, 2, 75, 16}, true);
    check(p, config);
  }
}

// The order of the programs is no part of the result.
TEST_P(AttentionTest, LongestBlocksFirst) {
  AttentionConfig config = tiles(16, 16);
  config.whole = false;
  config.longestFirst = true;
  for (const bool causal : {true, false}) {
    Problem p = problem({2, 3, 70, 16}, causal);
    check(p, config);
  }
}

// Scores of several hundred: the running maximum keeps exp2 in range, also if it increases from block to block. Each
// query has one key far above the others, so its output is that key's value times a probability. That is 1 except for
// roundings of the maximum, which its sum has too, and of storage.
TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  const Size s = {1, 1, 48, 8};
  Problem p = problem(s, true);
  for (int64_t t = 0; t < s.T; ++t)
    for (int64_t d = 0; d < s.D; ++d) {
      p.qkv.values[(t * 3 + 0) * s.D + d] = 16;
      p.qkv.values[(t * 3 + 1) * s.D + d] = 4 * t;
      p.qkv.values[(t * 3 + 2) * s.D + d] = (3 * t + d) % 64 - 32; // exact in every type and precision
    }
  p.qkv.reset();
  run(forward(p, tiles(16, 16)));
  std::vector<Want> want;
  for (const double value : head(p.qkv.values, s, 0, 0, 3, 2))
    want.push_back({value, std::abs(value) * (narrow() + productError(s.T) + 8 * roundoff)});
  expectClose("o", p.o, want);
}

// The scores of keys past the end would be 0, far above scores of minus several hundred, so their probabilities would
// be infinite. They must not affect a gradient.
TEST_P(AttentionTest, GradientsOfScoresFarBelowZeroAreFinite) {
  const Size s = {1, 1, 37, 8};
  for (const bool whole : {true, false}) {
    Problem p = problem(s, /*causal=*/false);
    for (int64_t t = 0; t < s.T; ++t)
      for (int64_t d = 0; d < s.D; ++d) {
        p.qkv.values[(t * 3 + 0) * s.D + d] = 16;
        p.qkv.values[(t * 3 + 1) * s.D + d] = -16;
      }
    p.qkv.reset();
    run(forward(p, tiles(16, 16)));
    p.o.values = p.o.read();
    p.lse.values = p.lse.read();
    AttentionConfig config = tiles(16, 16);
    config.whole = whole;
    run(backward(p, config));
    EXPECT_TRUE(std::ranges::all_of(p.dqkv.read(), [](double x) { return std::isfinite(x); })) << whole;
  }
}

// One program sums each element, in a fixed order: the same bits on any number of threads.
TEST_P(AttentionTest, BackwardIsDeterministic) {
  for (const bool whole : {true, false}) {
    Problem p = problem({2, 2, 50, 16}, true);
    run(forward(p));
    p.o.values = p.o.read();
    p.lse.values = p.lse.read();
    AttentionConfig config = tiles(16, 16);
    config.whole = whole;
    expectSameBits(backward(p, config), {&p.dqkv});
  }
}

KILN_ON_PRODUCT_MACHINES(AttentionTest);

} // namespace
} // namespace kiln
