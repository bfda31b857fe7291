// The backward pass of flash attention, in two plans. On a CPU one program does a whole head: it walks keys outside and
// queries inside, and adds to dQ block by block. On a GPU that would leave most of the machine without work: there one
// launch computes delta, one dK and dV by blocks of keys, one dQ by blocks of queries; scores are computed twice, and
// nothing is added by two programs.
//
// With P = exp2(S · scale2 − lse), dP = dO · Vᵀ and delta = rowsum(dO ∘ O):
//
//     dV = Pᵀ · dO      dS = P ∘ (dP − delta)      dK = scale · dSᵀ · Q      dQ = scale · dS · K

#include "kernels/heads.h"
#include "kernels/rows.h"

#include <cmath>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

namespace {
/// A tile of probabilities and of the gradient of the scaled scores, zero where nothing is seen.
struct Scores {
  Tile p, ds;
};
} // namespace

/// Of rows (BX, D) against columns (BY, D): queries against keys with their gradients `dout` against values, or all
/// turned. `lse` and `delta` are (BX, 1) or (1, BY); both results (BX, BY).
static Scores scoresOf(Tile rows, Tile columns, Tile gradRows, Tile gradColumns, Tile lse, Tile delta, Tile seen,
                       Tile scale, Precision precision) {
  // 1. The probabilities again. Queries from T on have lse = ∞, so that theirs are zero.
  Tile s = fma(dot(rows, transpose(columns), precision), scale * M_LOG2E, -lse); // (BX, BY)
  Tile p = where(seen, exp2(s, Accuracy::fast), 0.0);                            // (BX, BY)

  // 2. The gradient: masked too, so that nobody needs dP where P is zero.
  Tile dp = dot(gradRows, transpose(gradColumns), precision); // (BX, BY)
  Tile ds = where(seen, p * (dp - delta), 0.0);               // (BX, BY)
  return {p, ds};
}

/// delta of the queries from m on.
static Tile deltaOf(View o, View dout, Tile b, Tile h, Tile m, Shape queries) {
  Tile grad = cast(load(dout, {b, h, m, 0}, queries), f32); // (BM, D)
  Tile out = cast(load(o, {b, h, m, 0}, queries), f32);     // (BM, D)
  return sum(grad * out);                                   // (BM)
}

/// The first block of queries that sees the keys from n on: with `causal` the one on the diagonal.
static Tile firstQueries(Tile n, const AttentionConfig &cfg) {
  return cfg.causal ? n / cfg.bm * cfg.bm : zeros(i64, {});
}

/// One program a (batch, head). All (B, H, T, D) but lse and delta (B, H, T). dQ is summed in `dqSum`, which is f32: dq
/// itself when that is f32.
static void attentionBackward(View q, View k, View v, View o, View dout, View lse, View delta, View dqSum, View dq,
                              View dk, View dv, Tile scale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o, dout, dqSum, dq, dk, dv});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  Tile h = program_id(0), b = program_id(1), T = q.dim(2);

  // 1. delta, for every row once; dQ begins at zero.
  for (Tile m : range(0, T, cfg.bm)) {
    store(delta, {b, h, m}, deltaOf(o, dout, b, h, m, queries)); // (BM)
    store(dqSum, {b, h, m, 0}, zeros(f32, queries));
  }

  for (Tile n : range(0, T, cfg.bn)) {
    Tile key = load(k, {b, h, n, 0}, keys);                  // (BN, D)
    Tile value = load(v, {b, h, n, 0}, keys);                // (BN, D)
    Tile dkey = zeros(f32, keys), dvalue = zeros(f32, keys); // (BN, D)
    for (Tile m : range(firstQueries(n, cfg), T, cfg.bm)) {
      // 2. Probabilities and the gradient of the scores.
      Tile query = load(q, {b, h, m, 0}, queries);              // (BM, D)
      Tile grad = load(dout, {b, h, m, 0}, queries);            // (BM, D)
      Tile base = load(lse, {b, h, m}, {cfg.bm}, Padding::inf); // (BM)
      Tile own = load(delta, {b, h, m}, {cfg.bm});              // (BM)
      auto [p, ds] = scoresOf(query, key, grad, value, expand(base, -1), expand(own, -1), visible(m, n, T, cfg), scale,
                              cfg.precision); // (BM, BN)

      // 3. dV and dK, and this block of keys' share of dQ. The order of the shares is that of the outer loop.
      dvalue = dot(transpose(cast(p, dout.type())), grad, dvalue, cfg.precision); // (BN, D)
      Tile dscore = cast(ds * scale, q.type());                                   // (BM, BN)
      dkey = dot(transpose(dscore), query, dkey, cfg.precision);                  // (BN, D)
      store(dqSum, {b, h, m, 0}, dot(dscore, key, load(dqSum, {b, h, m, 0}, queries), cfg.precision));
    }
    store(dk, {b, h, n, 0}, cast(dkey, dk.type()));
    store(dv, {b, h, n, 0}, cast(dvalue, dv.type()));
  }

  // 4. Narrow storage: round the finished sums.
  if (dq.type() == f32)
    return;
  for (Tile m : range(0, T, cfg.bm))
    store(dq, {b, h, m, 0}, cast(load(dqSum, {b, h, m, 0}, queries), dq.type()));
}

/// delta alone, by blocks of queries.
static void attentionDelta(View o, View dout, View delta, AttentionConfig cfg) {
  const Shape queries = {cfg.bm, width({o, dout})};
  Tile m = program_id(0) * cfg.bm, h = program_id(1), b = program_id(2);
  store(delta, {b, h, m}, deltaOf(o, dout, b, h, m, queries)); // (BM)
}

/// dK and dV of a block of keys. Scores are turned, (BN, BM), so that they are the left factors of both as they are.
static void attentionBackwardKeys(View q, View k, View v, View dout, View lse, View delta, View dk, View dv, Tile scale,
                                  AttentionConfig cfg) {
  const int64_t D = width({q, k, v, dout, dk, dv});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  Tile n = program_id(0) * cfg.bn, h = program_id(1), b = program_id(2), T = q.dim(2);
  Tile key = load(k, {b, h, n, 0}, keys);                  // (BN, D)
  Tile value = load(v, {b, h, n, 0}, keys);                // (BN, D)
  Tile dkey = zeros(f32, keys), dvalue = zeros(f32, keys); // (BN, D)
  for (Tile m : range(firstQueries(n, cfg), T, cfg.bm)) {
    Tile query = load(q, {b, h, m, 0}, queries);              // (BM, D)
    Tile grad = load(dout, {b, h, m, 0}, queries);            // (BM, D)
    Tile base = load(lse, {b, h, m}, {cfg.bm}, Padding::inf); // (BM)
    Tile own = load(delta, {b, h, m}, {cfg.bm});              // (BM)
    auto [p, ds] = scoresOf(key, query, value, grad, expand(base, 0), expand(own, 0), transpose(visible(m, n, T, cfg)),
                            scale, cfg.precision);                   // (BN, BM)
    dvalue = dot(cast(p, dout.type()), grad, dvalue, cfg.precision); // (BN, D)
    dkey = dot(cast(ds, q.type()), query, dkey, cfg.precision);      // (BN, D)
  }
  store(dk, {b, h, n, 0}, cast(dkey * scale, dk.type()));
  store(dv, {b, h, n, 0}, cast(dvalue, dv.type()));
}

/// dQ of a block of queries.
static void attentionBackwardQueries(View q, View k, View v, View dout, View lse, View delta, View dq, Tile scale,
                                     AttentionConfig cfg) {
  const int64_t D = width({q, k, v, dout, dq});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  Tile m = program_id(0) * cfg.bm, h = program_id(1), b = program_id(2), T = q.dim(2);
  Tile query = load(q, {b, h, m, 0}, queries);              // (BM, D)
  Tile grad = load(dout, {b, h, m, 0}, queries);            // (BM, D)
  Tile base = load(lse, {b, h, m}, {cfg.bm}, Padding::inf); // (BM)
  Tile own = load(delta, {b, h, m}, {cfg.bm});              // (BM)
  Tile dquery = zeros(f32, queries);                        // (BM, D)
  Tile end = cfg.causal ? min(m + cfg.bm, T) : T;           // as in the forward pass
  for (Tile n : range(0, end, cfg.bn)) {
    Tile key = load(k, {b, h, n, 0}, keys);   // (BN, D)
    Tile value = load(v, {b, h, n, 0}, keys); // (BN, D)
    auto [p, ds] = scoresOf(query, key, grad, value, expand(base, -1), expand(own, -1), visible(m, n, T, cfg), scale,
                            cfg.precision);                       // (BM, BN)
    dquery = dot(cast(ds, q.type()), key, dquery, cfg.precision); // (BM, D)
  }
  store(dq, {b, h, m, 0}, cast(dquery * scale, dq.type()));
}

const Kernel attentionBackwardKernel =
    kernel("attention_backward", attentionBackward,
           {"q (B, H, T, D)", "k (B, H, T, D)", "v (B, H, T, D)", "o (B, H, T, D), the forward pass's",
            "dout (B, H, T, D)", "lse (B, H, T) f32, the forward pass's", "delta (B, H, T) f32, scratch",
            "dq_sum (B, H, T, D) f32, scratch, or dq itself", "dq (B, H, T, D)", "dk (B, H, T, D)", "dv (B, H, T, D)",
            "scale f32"},
           attentionFields());
const Kernel attentionDeltaKernel =
    kernel("attention_delta", attentionDelta,
           {"o (B, H, T, D), the forward pass's", "dout (B, H, T, D)", "delta (B, H, T) f32, row sums of o · dout"},
           attentionFields());
const Kernel attentionBackwardKeysKernel = kernel(
    "attention_backward_keys", attentionBackwardKeys,
    {"q (B, H, T, D)", "k (B, H, T, D)", "v (B, H, T, D)", "dout (B, H, T, D)", "lse (B, H, T) f32, the forward pass's",
     "delta (B, H, T) f32", "dk (B, H, T, D)", "dv (B, H, T, D)", "scale f32"},
    attentionFields());
const Kernel attentionBackwardQueriesKernel =
    kernel("attention_backward_queries", attentionBackwardQueries,
           {"q (B, H, T, D)", "k (B, H, T, D)", "v (B, H, T, D)", "dout (B, H, T, D)",
            "lse (B, H, T) f32, the forward pass's", "delta (B, H, T) f32", "dq (B, H, T, D)", "scale f32"},
           attentionFields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// On a GPU: 64 rows of both, of which a warp has 16, the rows of an instruction: scores and their gradients, left
/// factors of the next products, stay in its registers. What is wider does not fit these: keys, values and both of
/// their sums are held beside the queries, of which there are fewer then.
static AttentionConfig gpuBackwardTilesOf(const GpuFacts &gpu, int64_t T, int64_t D, Type type) {
  AttentionConfig config;
  if (bytesOf(type) > 2 || D > 64) {
    config = gpuTilesOf(gpu, T, D);
    config.bm = std::max(16, config.bm / 2);
  } else {
    while (config.bm > 16 && config.bm / 2 >= T)
      config.bm /= 2;
    config.bn = config.bm;
    config.warps = config.bm / 16;
  }
  config.whole = false;
  return config;
}

AttentionConfig pickAttentionBackward(const Target &target, int64_t T, int64_t D, Type type) {
  AttentionConfig config = target.visit([=](const CpuFacts &) { return tilesOf(64, T <= 128 ? 64 : 128, T); },
                                        [=](const GpuFacts &gpu) { return gpuBackwardTilesOf(gpu, T, D, type); });
  config.precision = target.precisionOf(type);
  return config;
}

/// One launch, one program a (batch, head). Workspace: delta, then the f32 sums of dQ where dq is narrower.
static Plan planWhole(const AttentionSaved &saved, const TensorRef &dq, const TensorRef &dk, const TensorRef &dv,
                      float scale, const AttentionConfig &config) {
  const Shape &shape = saved.q.extents;
  const Arg delta = Arg::workspace(0, f32, saved.lse.extents);
  const int64_t bytes = saved.lse.count() * bytesOf(f32);
  const bool direct = dq.type == f32;
  const Arg dqSum = direct ? Arg(dq) : Arg::workspace(bytes, f32, shape);
  return {.launches = {{&attentionBackwardKernel,
                        textOf(attentionBackwardKernel.fields, config),
                        programs(shape[1], shape[0]),
                        {saved.q, saved.k, saved.v, saved.o, saved.dout, saved.lse, delta, dqSum, dq, dk, dv, scale}}},
          .workspaceBytes = bytes + (direct ? 0 : bytes * shape[3])};
}

/// Three launches, by blocks. Workspace: delta.
static Plan planBlocks(const AttentionSaved &saved, const TensorRef &dq, const TensorRef &dk, const TensorRef &dv,
                       float scale, const AttentionConfig &config) {
  const auto &[q, k, v, o, lse, dout] = saved;
  const Arg delta = Arg::workspace(0, f32, lse.extents);
  const auto blocks = [&](int64_t rows) { return programs(ceildiv(q.extents[2], rows), q.extents[1], q.extents[0]); };
  const std::string text = textOf(attentionFields(), config);
  AttentionConfig rows = config; // delta has no scores: as many warps as there are rows for
  rows.bm = std::min(config.bm, 32);
  rows.warps = 8;
  return {
      .launches = {{&attentionDeltaKernel, textOf(attentionFields(), rows), blocks(rows.bm), {o, dout, delta}},
                   {&attentionBackwardKeysKernel, text, blocks(config.bn), {q, k, v, dout, lse, delta, dk, dv, scale}},
                   {&attentionBackwardQueriesKernel, text, blocks(config.bm), {q, k, v, dout, lse, delta, dq, scale}}},
      .workspaceBytes = lse.count() * bytesOf(f32)};
}

Plan planAttentionBackward(const Target &target, const AttentionSaved &saved, const TensorRef &dq, const TensorRef &dk,
                           const TensorRef &dv, float scale, bool causal,
                           const std::optional<AttentionConfig> &config) {
  const char *plan = "attention_backward";
  const Shape shape = expectHeads(plan, saved.q, saved.k, saved.v, saved.o, saved.lse);
  expectShape(plan, "dout", saved.dout, shape);
  expectType(plan, "dout", saved.dout, {saved.q.type});
  expectShape(plan, "dq", dq, shape);
  expectShape(plan, "dk", dk, shape);
  expectShape(plan, "dv", dv, shape);
  AttentionConfig chosen = config.value_or(pickAttentionBackward(target, shape[2], shape[3], saved.q.type));
  chosen.causal = causal;

  return (chosen.whole ? planWhole : planBlocks)(saved, dq, dk, dv, scale, chosen);
}

} // namespace kiln
