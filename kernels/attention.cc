// Flash attention. A program holds a block of queries and walks the keys and values, keeping for each query a running
// maximum and sum of the softmax and a running output; the backward pass walks keys outside and queries inside.

#include "kernels/attention.h"
#include "kernels/expect.h"
#include "kernels/rows.h"

#include <algorithm>
#include <cmath>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

/// Which of the scores of rows m … and columns n … count. Columns from T on do not exist; with `causal` a row sees its
/// own column and those before it, and rows from T on, which do not exist either, are not stored. Positions are counted
/// from the tile's corner, so that 32 bits hold them.
static Tile visible(Tile m, Tile n, Tile T, const AttentionConfig &cfg) {
  Tile row = expand(iota(cfg.bm), -1);       // (BM, 1)
  Tile column = expand(iota(cfg.bn), 0);     // (1, BN)
  if (cfg.causal)                            // n + column ≤ m + row
    return column - row <= cast(m - n, i32); // (BM, BN)
  return column < cast(T - n, i32);          // (1, BN)
}

/// q, k, v, o (B, H, T, D); lse (B, H, T).
static void attention(View q, View k, View v, View o, View lse, Tile scale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o});
  Tile m = program_id(0) * cfg.bm, h = program_id(1), b = program_id(2), T = q.dim(2);
  Tile scale2 = scale * M_LOG2E; // exp(s · scale) = exp2(s · scale2)

  Tile query = load(q, {b, h, m, 0}, {cfg.bm, D}); // (BM, D)
  Tile top = full(f32, {cfg.bm}, -infinity);       // (BM) running maximum
  Tile total = zeros(f32, {cfg.bm});               // (BM) running sum
  Tile out = zeros(f32, {cfg.bm, D});              // (BM, D) running output, times total

  // Causal: columns beyond the block's last row are never visited.
  Tile end = cfg.causal ? min(m + cfg.bm, T) : T;
  for (Tile n : range(0, end, cfg.bn)) {
    // 1. Scores.
    Tile key = load(k, {b, h, n, 0}, {cfg.bn, D}); // (BN, D)
    Tile s = dot(query, transpose(key)) * scale2;  // (BM, BN)
    s = where(visible(m, n, T, cfg), s, -infinity);

    // 2. Probabilities relative to the new maximum, and what the old ones shrink by.
    Tile higher = max(top, reduce_max(s)); // (BM)
    Tile p = exp2(s - expand(higher, -1)); // (BM, BN)
    Tile shrink = exp2(top - higher);      // (BM)
    total = total * shrink + sum(p);       // (BM)
    top = higher;

    // 3. Output.
    Tile value = load(v, {b, h, n, 0}, {cfg.bn, D});               // (BN, D)
    out = dot(cast(p, v.type()), value, out * expand(shrink, -1)); // (BM, D)
  }
  store(o, {b, h, m, 0}, cast(out * expand(1.0 / total, -1), o.type()));
  store(lse, {b, h, m}, top + log2(total));
}

/// One program a (batch, head). With P = exp2(S · scale2 − lse), dP = dO · Vᵀ and delta = rowsum(dO ∘ O):
///
///     dV = Pᵀ · dO      dS = P ∘ (dP − delta) · scale      dK = dSᵀ · Q      dQ = dS · K
///
/// All (B, H, T, D) but lse and delta (B, H, T). dQ is summed in `dqSum`, which is f32: dq itself when that is f32.
static void attentionBackward(View q, View k, View v, View o, View dout, View lse, View delta, View dqSum, View dq,
                              View dk, View dv, Tile scale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o, dout, dqSum, dq, dk, dv});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  Tile h = program_id(0), b = program_id(1), T = q.dim(2);
  Tile scale2 = scale * M_LOG2E;

  // 1. delta, for every row once; dQ begins at zero.
  for (Tile m : range(0, T, cfg.bm)) {
    Tile grad = cast(load(dout, {b, h, m, 0}, queries), f32); // (BM, D)
    Tile out = cast(load(o, {b, h, m, 0}, queries), f32);     // (BM, D)
    store(delta, {b, h, m}, sum(grad * out));                 // (BM)
    store(dqSum, {b, h, m, 0}, zeros(f32, queries));
  }

  for (Tile n : range(0, T, cfg.bn)) {
    Tile key = load(k, {b, h, n, 0}, keys);                  // (BN, D)
    Tile value = load(v, {b, h, n, 0}, keys);                // (BN, D)
    Tile dkey = zeros(f32, keys), dvalue = zeros(f32, keys); // (BN, D)

    // Causal: the first block of queries that sees these keys is the one on the diagonal.
    Tile first = zeros(i64, {});
    if (cfg.causal)
      first = n / cfg.bm * cfg.bm;
    for (Tile m : range(first, T, cfg.bm)) {
      // 2. The probabilities again. Rows from T on have lse = ∞, so that they are zero.
      Tile query = load(q, {b, h, m, 0}, queries);                         // (BM, D)
      Tile base = load(lse, {b, h, m}, {cfg.bm}, Padding::inf);            // (BM)
      Tile s = fma(dot(query, transpose(key)), scale2, -expand(base, -1)); // (BM, BN)
      Tile seen = visible(m, n, T, cfg);                                   // (BM, BN)
      Tile p = where(seen, exp2(s), 0.0);                                  // (BM, BN)

      // 3. dV, and the gradient of the scores: masked too, so that nobody needs dP where P is zero.
      Tile grad = load(dout, {b, h, m, 0}, queries);                   // (BM, D)
      Tile dp = dot(grad, transpose(value));                           // (BM, BN)
      Tile change = dp - expand(load(delta, {b, h, m}, {cfg.bm}), -1); // (BM, BN)
      Tile ds = where(seen, p * change * scale, 0.0);                  // (BM, BN)
      dvalue = dot(transpose(cast(p, dout.type())), grad, dvalue);     // (BN, D)

      // 4. dK, and this block of keys' share of dQ. The order of the shares is that of the outer loop.
      Tile dscore = cast(ds, q.type());           // (BM, BN)
      dkey = dot(transpose(dscore), query, dkey); // (BN, D)
      store(dqSum, {b, h, m, 0}, dot(dscore, key, load(dqSum, {b, h, m, 0}, queries)));
    }
    store(dk, {b, h, n, 0}, cast(dkey, dk.type()));
    store(dv, {b, h, n, 0}, cast(dvalue, dv.type()));
  }

  // 5. Narrow storage: round the finished sums.
  if (dq.type() == f32)
    return;
  for (Tile m : range(0, T, cfg.bm))
    store(dq, {b, h, m, 0}, cast(load(dqSum, {b, h, m, 0}, queries), dq.type()));
}

static std::vector<Field> fields() {
  return {field("bm", &AttentionConfig::bm, "rows of q a tile"),
          field("bn", &AttentionConfig::bn, "rows of k and v a tile"),
          field("causal", &AttentionConfig::causal, "row i sees columns 0 to i only")};
}
const Kernel attentionKernel =
    kernel("attention", attention,
           {"q (B, H, T, D)", "k (B, H, T, D)", "v (B, H, T, D)", "o (B, H, T, D), softmax(q · kᵀ · scale) · v",
            "lse (B, H, T) f32, base-2 logarithms of the sums of exponentials", "scale f32"},
           fields());
const Kernel attentionBackwardKernel =
    kernel("attention_backward", attentionBackward,
           {"q (B, H, T, D)", "k (B, H, T, D)", "v (B, H, T, D)", "o (B, H, T, D), the forward pass's",
            "dout (B, H, T, D)", "lse (B, H, T) f32, the forward pass's", "delta (B, H, T) f32, scratch",
            "dq_sum (B, H, T, D) f32, scratch, or dq itself", "dq (B, H, T, D)", "dk (B, H, T, D)", "dv (B, H, T, D)",
            "scale f32"},
           fields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// Tiles of about bm queries, of one height so that little of the last one lies past the end, and at most bn keys.
static AttentionConfig tilesOf(int64_t bm, int64_t bn, int64_t T) {
  const auto eights = [](int64_t rows) { return std::max<int64_t>(8, ceildiv(rows, 8) * 8); };
  AttentionConfig config;
  config.bm = static_cast<int>(eights(ceildiv(T, std::max<int64_t>(1, ceildiv(T, bm)))));
  config.bn = static_cast<int>(std::min(bn, eights(T)));
  return config;
}

/// Square tiles of 64 rows, or of 32 where `buffers` f32 tiles of D columns would not fit a program's shared memory.
static AttentionConfig gpuTilesOf(const GpuFacts &gpu, int64_t buffers, int64_t T, int64_t D) {
  const int64_t rows = buffers * 64 * D * bytesOf(f32) <= gpu.ctaSharedBytes ? 64 : 32;
  return tilesOf(rows, rows, T);
}

/// On a CPU short sequences take small tiles, so that little of a tile lies past the end; on long ones a larger tile
/// reads keys and values less often, and the backward pass, which keeps a block of keys at hand, queries.
AttentionConfig pickAttention(const Target &target, int64_t T, int64_t D) {
  return target.visit([=](const CpuFacts &) { return T <= 512 ? tilesOf(32, 32, T) : tilesOf(128, 64, T); },
                      [=](const GpuFacts &gpu) { return gpuTilesOf(gpu, 3, T, D); });
}

AttentionConfig pickAttentionBackward(const Target &target, int64_t T, int64_t D) {
  return target.visit(
      [=](const CpuFacts &) {
        return T <= 128 ? tilesOf(32, 32, T) : T <= 512 ? tilesOf(64, 64, T) : tilesOf(64, 128, T);
      },
      [=](const GpuFacts &gpu) { return gpuTilesOf(gpu, 6, T, D); });
}

/// q, k, v and o of one shape and type, lse beside them. The shape.
static Shape expectHeads(const char *plan, const TensorRef &q, const TensorRef &k, const TensorRef &v,
                         const TensorRef &o, const TensorRef &lse) {
  expectRank(plan, "q", q, 4);
  expectFloat(plan, "q", q);
  expectShape(plan, "k", k, q.extents);
  expectShape(plan, "v", v, q.extents);
  expectShape(plan, "o", o, q.extents);
  for (const TensorRef *tensor : {&k, &v, &o})
    expectType(plan, "k, v, o", *tensor, {q.type});
  expectShape(plan, "lse", lse, {q.extents[0], q.extents[1], q.extents[2]});
  expectType(plan, "lse", lse, {f32});
  return q.extents;
}

Plan planAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v, const TensorRef &o,
                   const TensorRef &lse, float scale, bool causal, const std::optional<AttentionConfig> &config) {
  const Shape shape = expectHeads("attention", q, k, v, o, lse);
  AttentionConfig chosen = config.value_or(pickAttention(target, shape[2], shape[3]));
  chosen.causal = causal;
  return {.launches = {{&attentionKernel,
                        textOf(attentionKernel.fields, chosen),
                        programs(ceildiv(shape[2], chosen.bm), shape[1], shape[0]),
                        {q, k, v, o, lse, scale}}}};
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
  AttentionConfig chosen = config.value_or(pickAttentionBackward(target, shape[2], shape[3]));
  chosen.causal = causal;

  // Workspace: delta, then the f32 sums of dQ where dq is narrower.
  const Shape rows = {shape[0], shape[1], shape[2]};
  const int64_t deltaBytes = shape[0] * shape[1] * shape[2] * bytesOf(f32);
  const bool direct = dq.type == f32;
  const Arg dqSum = direct ? Arg(dq) : Arg::workspace(deltaBytes, f32, shape);
  return {.launches = {{&attentionBackwardKernel,
                        textOf(attentionBackwardKernel.fields, chosen),
                        programs(shape[1], shape[0]),
                        {saved.q, saved.k, saved.v, saved.o, saved.dout, saved.lse, Arg::workspace(0, f32, rows), dqSum,
                         dq, dk, dv, scale}}},
          .workspaceBytes = deltaBytes + (direct ? 0 : deltaBytes * shape[3])};
}

} // namespace kiln
