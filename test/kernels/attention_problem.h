// Shared by the tests of attention's masks and dropout: problems of any extents, the keys that each query sees, the
// weights that dropout keeps, and the comparison of both passes with the plain formulas.

#pragma once

#include "kernels/attention.h"
#include "test/kernels/harness.h"
#include "test/kernels/host_dropout.h"

#include <cmath>
#include <functional>

namespace kiln {

// Attention of one head by the plain formulas in double precision, with the error that a correct kernel may have.
//
// Tolerances. The error of a score is (the error of a product of D terms + 4 · roundoff) · Σ |q k| · scale, and a
// rounding of the difference passed to exp. The relative error of a probability is that and exp's own: `relative`. In
// narrow storage, probabilities and score gradients are rounded to the storage type before the next product: `narrow`.
// Products add their own error.

/// q, dout and the kernel's own o (Tq, D), k and v (Tk, D).
struct AttentionHead {
  int64_t Tq, Tk, D;
  std::vector<double> q, k, v, o, dout;
  double scale;
  std::function<bool(int64_t i, int64_t j)> seen;                                  // whether query i sees key j
  std::function<double(int64_t i, int64_t j)> kept = [](auto, auto) { return 1; }; // what dropout makes of the weight
};

/// For products of D terms and of as many terms as queries or keys, and for rounding to storage.
struct AttentionErrors {
  double scores, sums, narrow, tiny;
};

/// o (Tq, D) and lse (Tq). A query without keys has 0 and ∞.
struct AttentionForward {
  std::vector<Want> o, lse;
};
AttentionForward attentionForward(const AttentionHead &head, const AttentionErrors &errors);

/// dq (Tq, D), dk and dv (Tk, D).
struct AttentionBackward {
  std::vector<Want> dq, dk, dv;
};
/// Adds to dk and dv, where they hold something: heads of a group.
void addAttentionBackward(const AttentionHead &head, const AttentionErrors &errors, AttentionBackward &to);

// Problems.

/// ProblemSize of a problem.
struct ProblemSize {
  int64_t B, H, Hk, Tq, Tk, D;
};

/// [begin, end) for each of the queries, or of the keys, of each sequence.
using Ranges = std::vector<int32_t>;

class AttentionProblemTest : public KernelTest {
protected:
  struct Problem {
    ProblemSize s;
    AttentionMask mask;
    Ranges ranges;            // (B, Tq, 2), or empty
    std::vector<double> free; // (B or 1, H or 1, Tq, Tk), or empty
    Array q, k, v, dout, o, lse, dq, dk, dv;
    std::vector<Array> held;              // what `mask` refers to
    std::array<int64_t, 2> rngState = {}; // of its dropout, and where it is
    std::vector<Tensor> rngStates = {};
    float scale() const { return static_cast<float>(1 / std::sqrt(double(s.D))); }

    bool sees(int64_t b, int64_t h, int64_t i, int64_t j) const {
      if (mask.causal && j > i + s.Tk - s.Tq)
        return false;
      if (!ranges.empty() && (j < ranges[2 * (b * s.Tq + i)] || j >= ranges[2 * (b * s.Tq + i) + 1]))
        return false;
      if (free.empty())
        return true;
      const Shape &extents = mask.mask->extents;
      const int64_t first = extents[0] == 1 ? 0 : b, second = extents[1] == 1 ? 0 : h;
      return free[((first * extents[1] + second) * s.Tq + i) * s.Tk + j] != 0;
    }
    /// The dropout factor of a weight.
    double kept(int64_t b, int64_t h, int64_t i, int64_t j) const {
      if (!mask.dropout)
        return 1;
      const auto &[rate, place, time, most] = *mask.dropout;
      if (!place)
        return rate.evaluationScale();
      const int64_t row = ((rngState[1] + b) * s.H + h) * most + i;
      return test::isKept(rngState[0], row, most, j, rate.threshold()) ? rate.scale() : 0;
    }
  };

  /// Weights are dropped as those of sequence number `first` of a step, and those after it; `most` is the maximum
  /// length.
  void setDropout(Problem &p, const DropoutRate &rate, int64_t key, int64_t first, int64_t most) {
    p.rngState = {key, first};
    const Tensor &rngState = p.rngStates.emplace_back(device, i64, Shape{2});
    p.rngStates.back().upload(p.rngState.data(), sizeof p.rngState);
    p.mask.dropout = Dropout{rate, rngState.ref(), p.s.Tq, most};
  }
  Problem problem(ProblemSize s, bool causal) {
    const Shape queries = {s.B, s.H, s.Tq, s.D}, keys = {s.B, s.Hk, s.Tk, s.D};
    return {.s = s,
            .mask = {.causal = causal},
            .q = uniform(queries, type(), 2),
            .k = uniform(keys, type(), 2),
            .v = uniform(keys, type(), 2),
            .dout = uniform(queries, type()),
            .o = unwritten(queries, type()),
            .lse = unwritten({s.B, s.H, s.Tq}, f32),
            .dq = unwritten(queries, type()),
            .dk = unwritten(keys, type()),
            .dv = unwritten(keys, type())};
  }
  void setRanges(Problem &p, Ranges ranges) {
    const Ranges columns = queryRanges(ranges, p.s.Tq, p.s.Tk);
    p.held.push_back(array({p.s.B, p.s.Tq, 2}, i32, {ranges.begin(), ranges.end()}));
    p.mask.ranges = p.held.back().ref();
    p.held.push_back(array({p.s.B, p.s.Tk, 2}, i32, {columns.begin(), columns.end()}));
    p.mask.queryRanges = p.held.back().ref();
    p.ranges = std::move(ranges);
  }
  void setMask(Problem &p, int64_t B, int64_t H, std::vector<double> free) {
    p.held.push_back(array({B, H, p.s.Tq, p.s.Tk}, i8, free));
    p.mask.mask = p.held.back().ref();
    p.free = std::move(free);
  }
  /// Zeros and ones; for every eighth query only zeros.
  std::vector<double> randomMask(int64_t matrices, int64_t Tq, int64_t Tk) {
    std::vector<double> free(matrices * Tq * Tk);
    for (size_t i = 0; i < free.size(); ++i)
      free[i] = (i / Tk) % 8 != 3 && random() % 3 != 0;
    return free;
  }

  AttentionConfig tiles(bool whole, int bm = 16, int bn = 16) const {
    AttentionConfig config{.bm = bm, .bn = bn, .precision = precision()};
    config.whole = whole;
    return config;
  }
  void launch(const Problem &p, const std::optional<AttentionConfig> &config) {
    run(planAttention(target(), p.q, p.k, p.v, p.o, p.lse, p.scale(), p.mask, config));
    const AttentionSaved saved = {p.q, p.k, p.v, p.o, p.lse, p.dout};
    run(planAttentionBackward(target(), saved, p.dq, p.dk, p.dv, p.scale(), p.mask, config));
  }
  void check(const Problem &p, const std::optional<AttentionConfig> &config);
  /// Compares the arrays with the formulas; with `hasSums` also lse.
  void expectRight(const Problem &p, bool hasSums = true);
  /// With tiles so small that there are several, by whole heads and by blocks, or with the plan's choice.
  void checkBoth(const Problem &p) {
    for (const bool whole : {true, false})
      if (takesAll(GetParam()) || whole == pickAttentionBackward(target(), p.s.Tq, p.s.D, type()).whole)
        check(p, tiles(whole));
  }
};

/// One of `count` equal parts.
inline std::vector<double> part(const std::vector<double> &all, int64_t which, int64_t count) {
  const int64_t each = static_cast<int64_t>(all.size()) / count;
  return {all.begin() + which * each, all.begin() + (which + 1) * each};
}

inline void AttentionProblemTest::check(const Problem &p, const std::optional<AttentionConfig> &config) {
  const ProblemSize &s = p.s;
  SCOPED_TRACE(testing::Message() << s.B << " x " << s.H << " of " << s.Hk << ", " << s.Tq << " see " << s.Tk << ", D "
                                  << s.D << (p.mask.causal ? " causal" : "")
                                  << (config && config->whole ? " whole" : ""));
  launch(p, config);
  expectRight(p);
}

inline void AttentionProblemTest::expectRight(const Problem &p, bool hasSums) {
  const ProblemSize &s = p.s;
  const auto o = p.o.read(), lse = p.lse.read(), dq = p.dq.read(), dk = p.dk.read(), dv = p.dv.read();
  const AttentionErrors errors = {productError(s.D), productError(s.H / s.Hk * std::max(s.Tq, s.Tk)),
                                  type() == f32 ? 0 : unit(type()), tiny(type())};
  for (int64_t b = 0; b < s.B; ++b)
    for (int64_t hk = 0; hk < s.Hk; ++hk) {
      AttentionBackward backward;
      const int64_t own = b * s.Hk + hk, keys = s.B * s.Hk, queries = s.B * s.H;
      for (int64_t h = hk * s.H / s.Hk; h < (hk + 1) * s.H / s.Hk; ++h) {
        const int64_t at = b * s.H + h;
        AttentionHead head = {.Tq = s.Tq,
                              .Tk = s.Tk,
                              .D = s.D,
                              .q = part(p.q.values, at, queries),
                              .k = part(p.k.values, own, keys),
                              .v = part(p.v.values, own, keys),
                              .o = part(o, at, queries),
                              .dout = part(p.dout.values, at, queries),
                              .scale = p.scale(),
                              .seen = [&](int64_t i, int64_t j) { return p.sees(b, h, i, j); },
                              .kept = [&](int64_t i, int64_t j) { return p.kept(b, h, i, j); }};
        const AttentionForward forward = attentionForward(head, errors);
        expectClose("o", head.o, forward.o, type());
        if (hasSums)
          expectClose("lse", part(lse, at, queries), forward.lse, f32);
        else // nor is what is lost by rounding o
          std::transform(forward.o.begin(), forward.o.end(), head.o.begin(),
                         [](const Want &want) { return want.value; });
        addAttentionBackward(head, errors, backward);
        expectClose("dq", part(dq, at, queries), backward.dq, type());
      }
      expectClose("dk", part(dk, own, keys), backward.dk, type());
      expectClose("dv", part(dv, own, keys), backward.dv, type());
    }
}

} // namespace kiln
