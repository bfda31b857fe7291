// The formulas: softmax(q · kᵀ · scale) · v over the keys that each query sees, after dropout of the weights, and its
// gradients.

#include "test/kernels/attention_problem.h"

#include <cmath>

namespace kiln {

namespace {
/// (Tq, Tk), and how far off they may be, relative to themselves.
struct Probabilities {
  std::vector<double> p, lse;
  double relative = 0;
};
} // namespace

static Probabilities probabilitiesOf(const AttentionHead &s, const AttentionErrors &errors) {
  Probabilities r{std::vector<double>(s.Tq * s.Tk, 0), std::vector<double>(s.Tq, INFINITY), 0};
  for (int64_t i = 0; i < s.Tq; ++i) {
    double top = -INFINITY, total = 0, largest = 0;
    for (int64_t j = 0; j < s.Tk; ++j) {
      double sum = 0, size = 0;
      for (int64_t d = 0; d < s.D; ++d) {
        const double product = s.q[i * s.D + d] * s.k[j * s.D + d];
        sum += product, size += std::abs(product);
      }
      r.p[i * s.Tk + j] = s.seen(i, j) ? sum * s.scale : -INFINITY;
      top = std::max(top, r.p[i * s.Tk + j]), largest = std::max(largest, size * s.scale);
    }
    for (int64_t j = 0; j < s.Tk; ++j)
      total += r.p[i * s.Tk + j] = top == -INFINITY ? 0 : std::exp(r.p[i * s.Tk + j] - top);
    for (int64_t j = 0; j < s.Tk && total > 0; ++j)
      r.p[i * s.Tk + j] /= total;
    if (total > 0)
      r.lse[i] = (top + std::log(total)) * M_LOG2E;
    r.relative = std::max(r.relative, 2 * (errors.scores + 8 * roundoff) * largest +
                                          static_cast<double>(s.Tk) * roundoff + 3 * transcendental);
  }
  return r;
}

AttentionForward attentionForward(const AttentionHead &s, const AttentionErrors &errors) {
  const Probabilities P = probabilitiesOf(s, errors);
  AttentionForward want{std::vector<Want>(s.Tq * s.D), {}};
  for (int64_t i = 0; i < s.Tq; ++i) {
    for (int64_t j = 0; j < s.Tk; ++j)
      for (int64_t d = 0; d < s.D; ++d) {
        const double term = P.p[i * s.Tk + j] * s.kept(i, j) * s.v[j * s.D + d];
        want.o[i * s.D + d].value += term;
        want.o[i * s.D + d].slack += std::abs(term) * (2 * P.relative + errors.narrow + errors.sums + 8 * roundoff) +
                                     (s.seen(i, j) ? errors.tiny * std::abs(s.v[j * s.D + d]) : 0);
      }
    want.lse.push_back(std::isinf(P.lse[i]) ? Want{P.lse[i]}
                                            : Want{P.lse[i], 2 * P.relative + 4 * roundoff * std::abs(P.lse[i])});
  }
  return want;
}

void addAttentionBackward(const AttentionHead &s, const AttentionErrors &errors, AttentionBackward &to) {
  const Probabilities P = probabilitiesOf(s, errors);
  const double sums = errors.sums + 8 * roundoff, relative = 2 * P.relative;
  to.dq.assign(s.Tq * s.D, {});
  to.dk.resize(s.Tk * s.D);
  to.dv.resize(s.Tk * s.D);
  const auto add = [&](Want &want, double factor, double slack, double by) {
    want.value += factor * by;
    want.slack += (slack + std::abs(factor) * (errors.narrow + sums) + errors.tiny) * std::abs(by);
  };
  for (int64_t i = 0; i < s.Tq; ++i)
    for (int64_t j = 0; j < s.Tk; ++j) {
      if (!s.seen(i, j))
        continue;
      double difference = 0, size = 0; // dP − delta
      for (int64_t d = 0; d < s.D; ++d) {
        const double left = s.dout[i * s.D + d] * s.v[j * s.D + d] * s.kept(i, j),
                     right = s.dout[i * s.D + d] * s.o[i * s.D + d];
        difference += left - right, size += std::abs(left) + std::abs(right);
      }
      const double prob = P.p[i * s.Tk + j], ds = prob * difference * s.scale;
      const double slack = prob * s.scale * (relative * std::abs(difference) + (errors.scores + 4 * roundoff) * size);
      for (int64_t d = 0; d < s.D; ++d) {
        add(to.dq[i * s.D + d], ds, slack, s.k[j * s.D + d]);
        add(to.dk[j * s.D + d], ds, slack, s.q[i * s.D + d]);
        add(to.dv[j * s.D + d], prob * s.kept(i, j), prob * s.kept(i, j) * relative, s.dout[i * s.D + d]);
      }
    }
}

} // namespace kiln
