// Plain attention: two matrix products for each head, with a softmax of the rows between them.
//
//     S = scale · Q · Kᵀ      P = softmax(S)      O = P̃ · V, where P̃ is P after dropout
//
//     dV = P̃ᵀ · dO      dP = (dO · Vᵀ) ∘ M · s      dS = P ∘ (dP − rowsum(P ∘ dP))      dQ = scale · dS · K
//     dK = scale · dSᵀ · Q

#include "kernels/plain_attention.h"
#include "kernels/attention_mask.h"
#include "kernels/attention_plan.h"
#include "kernels/blocks.h"
#include "kernels/matmul.h"
#include "kernels/operands.h"
#include "kernels/rows.h"

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

/// C = scale · op(A) · op(B) of every batch and head. op(A) (M, K), op(B) (K, N), C (M, N). A and C have H heads, and B
/// has Hk. With option `sumGroup` A and B have H heads, and C has Hk.
static void headProduct(View a, View b, View c, Tile scale, HeadProductConfig cfg) {
  const int64_t BM = cfg.bm, BN = cfg.bn, BK = cfg.bk;
  Tile m = program_id(0) * BM, n = program_id(1) * BN, H = c.dim(1);
  Tile h = program_id(2) % H, batch = program_id(2) / H;
  Tile acc = zeros(f32, {BM, BN}); // (BM, BN)
  const auto add = [&](const Tile &ha, const Tile &hb) {
    for (Tile k : range(0, a.dim(cfg.ta ? 2 : 3), BK)) {
      Tile left = cfg.ta ? transpose(load(a, {batch, ha, k, m}, {BK, BM})) : load(a, {batch, ha, m, k}, {BM, BK});
      Tile right = cfg.tb ? transpose(load(b, {batch, hb, n, k}, {BN, BK})) : load(b, {batch, hb, k, n}, {BK, BN});
      acc = dot(cast(left, b.type()), right, acc, cfg.precision); // (BM, BN)
    }
  };
  if (cfg.sumGroup && cfg.group > 1)
    for (Tile g : range(cfg.group))
      add(h * cfg.group + g, h * cfg.group + g);
  else
    add(h, cfg.sumGroup || cfg.group == 1 ? h : h / cfg.group);
  store(c, {batch, h, m, n}, cast(acc * scale, c.type()));
}

/// The softmax of scores, in place, over the keys that each query sees. `dropped` receives the weights after dropout.
static void maskedSoftmax(View weights, View dropped, View ranges, View mask, View rngState, Tile maxLength,
                          Tile threshold, Tile keptScale, AttentionConfig cfg) {
  const int64_t Tk = width({weights, dropped});
  const Shape block = {cfg.bm, Tk};
  cfg.bn = static_cast<int>(Tk);
  Tile row = program_id(0) * cfg.bm, h = program_id(1), b = program_id(2), first = zeros(i64, {});
  ScoreMask ofQueries = {.bytes = mask, .b = b, .h = h, .Tq = weights.dim(2), .Tk = weights.dim(3), .byQueries = true};
  loadQueryBounds(ofQueries, ranges, row, cfg);
  Tile s = load(weights, {b, h, row, 0}, block);              // (BM, Tk)
  Tile seen = visible(row, first, ofQueries, cfg);            // (BM, Tk)
  Tile top = reduce_max(where(seen, s, -infinity), -1, keep); // (BM, 1)
  Tile base = where(top == -infinity, 0.0, top);              // (BM, 1)
  Tile e = where(seen, exp(s - base), 0.0);                   // (BM, Tk)
  Tile total = sum(e, -1, keep);                              // (BM, 1)
  Tile p = e * where(total > 0.0, 1.0 / total, 0.0);          // (BM, Tk)
  store(weights, {b, h, row, 0}, p);
  if (cfg.dropout == DropoutMode::off)
    return;
  const WeightDropout dropout = loadDropout({rngState, maxLength, threshold, keptScale}, b, weights.dim(1), cfg);
  const auto kept = keptWeights(row, first, h, dropout, cfg);
  store(dropped, {b, h, row, 0}, scaleKept(zeroMasked(kept, p), dropout, cfg));
}

/// Replaces the gradient of the weights after dropout by that of the scores, and the weights by those after dropout.
static void maskedSoftmaxBackward(View weights, View dweights, View rngState, Tile maxLength, Tile threshold,
                                  Tile keptScale, AttentionConfig cfg) {
  const int64_t Tk = width({weights, dweights});
  const Shape block = {cfg.bm, Tk};
  cfg.bn = static_cast<int>(Tk);
  Tile row = program_id(0) * cfg.bm, h = program_id(1), b = program_id(2);
  const WeightDropout dropout = loadDropout({rngState, maxLength, threshold, keptScale}, b, weights.dim(1), cfg);
  const auto kept = keptWeights(row, zeros(i64, {}), h, dropout, cfg);
  const auto drop = [&](const Tile &x) { return scaleKept(zeroMasked(kept, x), dropout, cfg); };
  Tile p = load(weights, {b, h, row, 0}, block);         // (BM, Tk)
  Tile dp = drop(load(dweights, {b, h, row, 0}, block)); // (BM, Tk)
  store(dweights, {b, h, row, 0}, p * (dp - sum(p * dp, -1, keep)));
  if (cfg.dropout != DropoutMode::off)
    store(weights, {b, h, row, 0}, drop(p));
}

const Kernel headProductKernel =
    kernel("head_product", headProduct,
           {"a (B, H, M, K), or transposed in its last two dimensions (ta)",
            "b (B, Hk, K, N), or transposed in its last two dimensions (tb)", "c (B, H, M, N)",
            "scale f32, factor of the product"},
           {field("bm", &HeadProductConfig::bm, "rows of a tile of C"),
            field("bn", &HeadProductConfig::bn, "columns of a tile of C"),
            field("bk", &HeadProductConfig::bk, "extent of K that one iteration multiplies"),
            field("ta", &HeadProductConfig::ta, "A is stored (K, M)"),
            field("tb", &HeadProductConfig::tb, "B is stored (N, K)"),
            field("group", &HeadProductConfig::group, "heads of A for each head of B (GQA)"),
            field("sum_group", &HeadProductConfig::sumGroup, "sums the products of a GQA group into one head of C"),
            field("precision", &HeadProductConfig::precision, precisionNames,
                  "precision of f32 products: ieee, tf32, tf32x3 or bf16x3"),
            field("warps", &HeadProductConfig::warps, "warps of a program, on a GPU"),
            field("stages", &HeadProductConfig::stages, "pipeline stages in a GPU's shared memory")});
const Kernel maskedSoftmaxKernel = kernel("masked_softmax", maskedSoftmax,
                                          {"weights (B, H, Tq, Tk) f32, scores, then their softmax",
                                           "dropped (B, H, Tq, Tk) f32, the weights after dropout", aboutRanges,
                                           aboutMask, aboutRngState, aboutMaxLength, aboutThreshold, aboutKeptScale},
                                          attentionFields());
const Kernel maskedSoftmaxBackwardKernel =
    kernel("masked_softmax_backward", maskedSoftmaxBackward,
           {"weights (B, H, Tq, Tk) f32, the softmax, then the weights after dropout",
            "dweights (B, H, Tq, Tk) f32, the gradient of the weights after dropout, then that of the scores",
            aboutRngState, aboutMaxLength, aboutThreshold, aboutKeptScale},
           attentionFields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

namespace {
/// The heads of A that share one of B; with `sumGroup` they are added to one head of C instead.
struct Heads {
  int64_t group;
  bool sumGroup = false;
};
} // namespace

/// C = scale · op(A) · op(B) of every head; operands are tensors or workspace.
static Plan planHeadProduct(const Target &target, Layout layout, const TensorRef &a, const TensorRef &b,
                            const TensorRef &c, float scale, const Heads &heads, const std::optional<Arg> &inA = {},
                            const std::optional<Arg> &inC = {}) {
  const int64_t M = c.extents[2], N = c.extents[3], K = a.extents[layout == Layout::tn ? 2 : 3];
  const MatmulConfig tile = pickMatmul(target, layout, M, N, K, b.type);
  HeadProductConfig config = {.bm = tile.bm, .bn = tile.bn, .bk = tile.bk};
  config.precision = tile.precision;
  config.warps = tile.warps;
  config.ta = tile.ta;
  config.tb = tile.tb;
  config.group = static_cast<int>(heads.group);
  config.sumGroup = heads.sumGroup;
  return {.launches = {makeLaunch(headProductKernel, config,
                                  programs(cdiv(M, config.bm), cdiv(N, config.bn), c.extents[0] * c.extents[1]),
                                  {inA.value_or(a), b, inC.value_or(c), scale})}};
}

/// The config of the kernels whose tiles have whole rows of weights.
static AttentionConfig softmaxConfig(const Target &target, const AttentionExtents &s, const AttentionMask &mask) {
  AttentionConfig rows = configFor({}, {}, s, mask);
  rows.bm = pickWholeRows(target, rowsOnCpu(target.bucket(s.Tk)), s.Tk);
  return rows;
}

static void expectStored(const char *plan, const TensorRef &weights, const AttentionExtents &s) {
  expectShape(plan, "weights", weights, {s.B, s.H, s.Tq, s.Tk});
  checkOperands(maskedSoftmaxKernel, {weights}, plan);
}

Plan planPlainAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v,
                        const TensorRef &o, const TensorRef &weights, float scale, const AttentionMask &mask) {
  const char *plan = "plain_attention";
  const AttentionExtents s = expectHeads(plan, q, k, v, o, {}, mask, scale);
  expectStored(plan, weights, s);
  const AttentionConfig rows = softmaxConfig(target, s, mask);
  const bool drops = rows.dropout != DropoutMode::off;
  const Arg dropped = drops ? Arg::workspace(0, f32, weights.extents) : Arg(weights);
  std::vector<Arg> args = {weights, dropped, mask.ranges.value_or(weights), wholeMask(mask, s, weights)};
  appendDropout(args, mask, weights);
  Plan all = planHeadProduct(target, Layout::nt, q, k, weights, scale, {s.H / s.Hk});
  all += Plan{.launches = {makeLaunch(maskedSoftmaxKernel, rows, programs(cdiv(s.Tq, rows.bm), s.H, s.B), args)},
              .workspaceBytes = drops ? weights.bytes() : 0};
  all += planHeadProduct(target, Layout::nn, weights, v, o, 1, {s.H / s.Hk}, dropped);
  return all;
}

Plan planPlainAttentionBackward(const Target &target, const PlainAttentionSaved &saved, const TensorRef &dq,
                                const TensorRef &dk, const TensorRef &dv, float scale, const AttentionMask &mask) {
  const char *plan = "plain_attention_backward";
  const auto &[q, k, v, weights, dout] = saved;
  const AttentionExtents s = expectHeads(plan, q, k, v, dout, {}, mask, scale);
  expectStored(plan, weights, s);
  checkOperands(attentionBackwardKernel, {q, k, v, {}, dout, {}, {}, {}, {}, {}, dq, dk, dv}, plan);
  const int64_t group = s.H / s.Hk;
  const Arg dweights = Arg::workspace(0, f32, weights.extents);
  const AttentionConfig rows = softmaxConfig(target, s, mask);
  std::vector<Arg> args = {weights, dweights};
  appendDropout(args, mask, weights);
  Plan all = planHeadProduct(target, Layout::nt, dout, v, weights, 1, {group}, {}, dweights);
  all +=
      Plan{.launches = {makeLaunch(maskedSoftmaxBackwardKernel, rows, programs(cdiv(s.Tq, rows.bm), s.H, s.B), args)},
           .workspaceBytes = weights.bytes()};
  all += planHeadProduct(target, Layout::nn, weights, k, dq, scale, {group}, dweights);
  all += planHeadProduct(target, Layout::tn, weights, q, dk, scale, {group, /*sumGroup=*/true}, dweights);
  all += planHeadProduct(target, Layout::tn, weights, dout, dv, 1, {group, /*sumGroup=*/true});
  return all;
}

} // namespace kiln
