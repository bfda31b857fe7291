// Flash attention, forward. A program holds a block of queries and walks the keys and values, keeping for each query a
// running maximum and sum of the softmax and a running output. Where blocks of queries are few, several programs share
// the keys of one, and another launch combines their results (flash-decoding).

#include "kernels/heads.h"
#include "kernels/rows.h"

#include <cmath>
#include <string>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

namespace {
/// What a block of queries is given, and what comes of it.
struct Block {
  View q, k, v, ranges, mask;
  Tile m, h, b;
  WeightDropout dropout;
  Tile scale;
};
struct Attended {
  Tile o, sums; // (BM, D), and (BM), the log-sum-exps
};
} // namespace

/// q · kᵀ, (BM, BN).
static Tile scoresOf(const Tile &query, const Tile &key, const AttentionConfig &cfg) {
  if (!cfg.decode)
    return dot(query, transpose(key), cfg.precision);
  return unsqueeze(sum(cast(query, f32) * cast(key, f32)), 0); // (1, BN)
}

/// out + p · v, (BM, D).
static Tile addValues(const Tile &p, const Tile &value, const Tile &out, const AttentionConfig &cfg) {
  if (!cfg.decode)
    return dot(cast(p, value.type()), value, out, cfg.precision);
  return out + sum(transpose(p) * cast(value, f32), 0, keep); // (1, D)
}

/// The block's queries, of D numbers, over the keys of [first, end).
static Attended attend(const Block &of, int64_t D, const Tile &first, const Tile &end, const Sight &sight,
                       const AttentionConfig &cfg) {
  Tile scale2 = of.scale * M_LOG2E; // exp(s · scale) = exp2(s · scale2)
  Tile m = of.m, hk = keyHeadOf(of.h, cfg);
  Tile query = load(of.q, {of.b, of.h, m, 0}, {cfg.bm, D}); // (BM, D)
  Tile top = full(f32, {cfg.bm}, -infinity);                // (BM) running maximum of the scores, times scale2
  Tile total = zeros(f32, cfg.rowSumLanes > 1 ? Shape{cfg.bm, cfg.rowSumLanes}
                                              : Shape{cfg.bm}); // (BM) or (BM, sums) running sums
  Tile out = zeros(f32, {cfg.bm, D});                           // (BM, D) running output, times total

  // Columns that no row of the block sees are never visited.
  for (Tile n : range(first, end, cfg.bn)) {
    // 1. Scores. Of a single query keys and values are all there is to wait for, and so asked for together.
    Tile key = load(of.k, {of.b, hk, n, 0}, {cfg.bn, D}); // (BN, D)
    Tile value;
    if (cfg.decode)
      value = load(of.v, {of.b, hk, n, 0}, {cfg.bn, D}); // (BN, D)
    Tile s = scoresOf(query, key, cfg);                  // (BM, BN)
    Tile seen = *visible(m, n, sight, cfg);              // (BM, BN)

    // 2. Probabilities relative to the new maximum, and what the old ones shrink by. A row that has seen no column yet
    //    has no maximum, and anything is as good.
    Tile higher = max(top, reduce_max(where(seen, s, -infinity)) * scale2); // (BM)
    Tile base = mayBeBlind(cfg) ? where(higher == -infinity, 0.0, higher) : higher;
    Tile p = exp2(fma(s, scale2, -unsqueeze(base, -1)), Accuracy::fast); // (BM, BN)
    p = where(seen, p, 0.0);
    Tile shrink = exp2(top - base, Accuracy::fast); // (BM)
    if (cfg.rowSumLanes > 1)
      total = fma(total, unsqueeze(shrink, -1),
                  sum(reshape(p, {cfg.bm, cfg.bn / cfg.rowSumLanes, cfg.rowSumLanes}), 1)); // (BM, sums)
    else
      total = fma(total, shrink, sum(p)); // (BM)
    top = higher;

    // 3. Output, of the weights that are kept. The sum is that of all.
    p = masked(keptWeights(m, n, of.h, of.dropout, cfg), p);
    if (!cfg.decode)
      value = load(of.v, {of.b, hk, n, 0}, {cfg.bn, D});         // (BN, D)
    out = addValues(p, value, out * unsqueeze(shrink, -1), cfg); // (BM, D)
  }
  if (cfg.rowSumLanes > 1)
    total = sum(total);                               // (BM)
  Tile share = 1.0 / total, sums = top + log2(total); // (BM)
  if (mayBeBlind(cfg)) {
    share = where(total > 0.0, share, 0.0);
    sums = where(total > 0.0, sums, infinity);
  }
  return {out * unsqueeze(scaled(share, of.dropout, cfg), -1), sums};
}

/// What the queries of `of` may see.
static Sight sightOf(const Block &of, const AttentionConfig &cfg) {
  Sight sight = {
      .mask = of.mask, .b = of.b, .h = of.h, .Tq = of.q.dim(2), .Tk = keysIn(of.k, of.q, cfg), .byQueries = true};
  lookByQueries(sight, of.ranges, of.m, cfg);
  return sight;
}

/// q, o (B, H, Tq, D); k, v (B, Hk, Tk, D); lse (B, H, Tq); ranges (B, Tq, 2); mask (B, H, Tq, Tk).
static void attention(View q, View k, View v, View o, View lse, View ranges, View mask, Tile scale, View site,
                      Tile most, Tile threshold, Tile keptScale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o});
  auto [block, h, b] = turnOf(cfg);
  Tile m = block * cfg.bm;
  const Block of = {q,    k, v, ranges, mask, m, h, b, dropoutFrom(site, most, threshold, keptScale, b, q.dim(1), cfg),
                    scale};
  const Sight sight = sightOf(of, cfg);
  auto [first, end] = keysOf(m, ranges, sight, cfg);
  const auto [out, sums] = attend(of, D, first, end, sight, cfg);
  store(o, {b, h, m, 0}, cast(out, o.type()));
  store(lse, {b, h, m}, sums);
}

/// The same of one part of the keys that a block of queries sees: as many in each, in whole blocks, from the first on.
/// o (P, N, Tq, D), lse (P, N, Tq), with N = B · H.
static void attentionSplit(View q, View k, View v, View o, View lse, View ranges, View mask, Tile scale, View site,
                           Tile most, Tile threshold, Tile keptScale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o});
  Tile part = program_id(0) % cfg.kvSplits, m = program_id(0) / cfg.kvSplits * cfg.bm, h = program_id(1),
       b = program_id(2);
  const Block of = {q,    k, v, ranges, mask, m, h, b, dropoutFrom(site, most, threshold, keptScale, b, q.dim(1), cfg),
                    scale};
  const Sight sight = sightOf(of, cfg);
  auto [first, end] = keysOf(m, ranges, sight, cfg);
  const int64_t share = cfg.kvSplits * cfg.bn;
  Tile each = (max(end - first, 0) + (share - 1)) / share * cfg.bn;
  Tile begin = first + part * each;
  const auto [out, sums] = attend(of, D, begin, min(begin + each, end), sight, cfg);
  Tile n = b * q.dim(1) + h;
  store(o, {part, n, m, 0}, out);
  store(lse, {part, n, m}, sums);
}

/// o and lse of all keys from those of each part: weights relative to the largest, and sums in the parts' order. One
/// that a query sees nothing of has an lse of ∞ and weighs nothing.
static void attentionCombine(View os, View lses, View o, View lse, AttentionConfig cfg) {
  const int64_t D = width({os, o});
  Tile m = program_id(0) * cfg.bm, h = program_id(1), b = program_id(2), n = b * o.dim(1) + h;
  Tile sums = reshape(load(lses, {0, n, m}, {cfg.kvSplits, 1, cfg.bm}), {cfg.kvSplits, cfg.bm});        // (P, BM)
  Tile each = reshape(load(os, {0, n, m, 0}, {cfg.kvSplits, 1, cfg.bm, D}), {cfg.kvSplits, cfg.bm, D}); // (P, BM, D)
  Tile isBlind = sums == infinity;                                                                      // (P, BM)
  Tile top = reduce_max(where(isBlind, -infinity, sums), 0);                                            // (BM)
  Tile weight = where(isBlind, 0.0, exp2(sums - unsqueeze(top, 0), Accuracy::fast));                    // (P, BM)
  Tile total = sum(weight, 0);                                                                          // (BM)
  Tile out = sum(each * unsqueeze(weight, -1), 0);                                                      // (BM, D)
  Tile seesNone = total == 0.0;                                                                         // (BM)
  store(o, {b, h, m, 0}, cast(out * unsqueeze(where(seesNone, 0.0, 1.0 / total), -1), o.type()));
  store(lse, {b, h, m}, where(seesNone, infinity, top + log2(total)));
}

const Kernel attentionKernel =
    kernel("attention", attention,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D)", "v (B, Hk, Tk, D)", "o (B, H, Tq, D), softmax(q · kᵀ · scale) · v",
            "lse (B, H, Tq) f32, base-2 logarithms of the sums of exponentials",
            "ranges (B, Tq, 2) i32, read with has_bounds: a row sees columns from [0] and below [1]",
            "mask (B, H, Tq, Tk) i8, read when masked: a row sees the columns that are not 0", "scale f32", ofSite,
            ofMost, ofThreshold, ofKeptScale},
           attentionFields());
const Kernel attentionSplitKernel =
    kernel("attention_split", attentionSplit,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D)", "v (B, Hk, Tk, D)",
            "o (P, N, Tq, D) f32, attention of each part, N = B · H",
            "lse (P, N, Tq) f32, base-2 logarithms of the sums of exponentials of each part",
            "ranges (B, Tq, 2) i32, read with has_bounds: a row sees columns from [0] and below [1]",
            "mask (B, H, Tq, Tk) i8, read when masked: a row sees the columns that are not 0", "scale f32", ofSite,
            ofMost, ofThreshold, ofKeptScale},
           attentionFields());
const Kernel attentionCombineKernel =
    kernel("attention_combine", attentionCombine,
           {"os (P, N, Tq, D) f32, attention of each part, N = B · H", "lses (P, N, Tq) f32, and its sums",
            "o (B, H, Tq, D), attention of all", "lse (B, H, Tq) f32"},
           {field("bm", &AttentionConfig::bm, "rows of q a program"),
            field("kv_splits", &AttentionConfig::kvSplits, "splits of the keys"),
            field("warps", &AttentionConfig::warps, "warps of a program, on a GPU")});

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// On a GPU: 128 queries, of which a warp has 32 rows, so that each fragment of keys and values is multiplied twice, or
/// 16 where fragments and output would not fit its registers: rows of more than 128 bytes. At least 16 rows a warp: the
/// rows of an instruction, and so scores and probabilities stay in the warp's registers. A lane holds two of eight
/// columns of these, and sums its own. The queries and the rings of keys and values fit shared memory. Where groups of
/// four warps read keys and values from there, no warp has fragments of them to multiply twice: it has 16 rows, and a
/// program one group, which leaves registers for four programs.
static AttentionConfig gpuForwardTilesOf(const GpuFacts &gpu, int64_t Tq, int64_t Tk, int64_t D, Type type) {
  AttentionConfig config{.bm = 128, .bn = 64, .warps = D * bytesOf(type) <= 128 ? 4 : 8, .rowSumLanes = 8};
  if (isForGroups(gpu, D, type))
    config.bm = 64, config.minCtasPerSm = 4;
  if (gpu.isForGraphics()) // its tensor cores take longer than what more rounds cost, and no register is spilled
    config.bn = 32;
  const auto bytes = [&] { return (config.bm + 2 * config.stages * config.bn) * D * bytesOf(type); };
  while (config.bm > 16 && config.bm / 2 >= Tq)
    config.bm /= 2;
  while (config.bn > 16 && (config.bn / 2 >= Tk || (config.bn > 32 && bytes() > gpu.ctaSharedBytes)))
    config.bn /= 2;
  while (config.bm > 16 && bytes() > gpu.ctaSharedBytes)
    config.bm /= 2;
  config.warps = std::min(config.warps, config.bm / 16);
  return config;
}

/// Of a single query, where no tensor cores multiply: others of its block would be multiplied in vain.
static AttentionConfig rowsOf(int64_t Tk) {
  AttentionConfig config = {.bm = 1, .bn = 64, .warps = 4, .decode = true};
  while (config.bn > 16 && config.bn / 2 >= Tk)
    config.bn /= 2;
  return config;
}

/// On a CPU a larger tile reads keys and values less often, and the backward pass, which keeps a block of keys at hand,
/// queries; but a product's operands and results should stay in the first caches.
AttentionConfig pickAttention(const Target &target, int64_t Tq, int64_t D, Type type,
                              const std::optional<int64_t> &keys) {
  int64_t Tk = keys.value_or(Tq);
  if (target.elastic) // one choice for all pairs of lengths of which the longer is in a bucket
    Tk = Tq = target.lengthBucket(std::max(Tq, Tk));
  const Precision precision = target.precisionOf(type);
  const bool isExact = type == f32 && precision == Precision::ieee; // and so no work for tensor cores
  AttentionConfig config =
      target.visit([=](const CpuFacts &) { return Tq == 1 ? rowsOf(Tk) : tilesOf(Tq <= 512 ? 64 : 128, 64, Tq, Tk); },
                   [=](const GpuFacts &gpu) {
                     if (Tq == 1 && isExact)
                       return rowsOf(Tk);
                     return isExact ? gpuTilesOf(gpu, std::max(Tq, Tk), D) : gpuForwardTilesOf(gpu, Tq, Tk, D, type);
                   });
  config.precision = precision;
  config.bn = keysOfBlock(config);
  config.unequalLengths = target.elastic;
  return config;
}

/// Blocks of keys that a part has at least, and programs that a CPU's cores want: of the shape alone, so that results
/// do not depend on how many there are.
static constexpr int64_t leastBlocks = 4, enoughPrograms = 8;

/// On a GPU what takes least, where a block costs about what memory takes to answer and its arithmetic, and a launch as
/// much as several: programs run in waves, of as many as SMs hold.
static int gpuKvSplitsOf(const GpuFacts &gpu, int64_t programs, int64_t blocks) {
  constexpr double block = 600, launch = 4000;
  constexpr int64_t together = 4, mostParts = 64;
  int best = 1;
  double least = 0;
  for (int64_t parts = 1; parts <= std::min(blocks, mostParts); ++parts) {
    const int64_t waves = cdiv(programs * parts, gpu.sms * together);
    const double cycles = static_cast<double>(waves * cdiv(blocks, parts)) * block + (parts > 1 ? launch : 0);
    if (least == 0 || cycles < least)
      least = cycles, best = static_cast<int>(parts);
  }
  return best;
}

int pickKvSplits(const Target &target, const AttentionConfig &config, int64_t heads, int64_t Tq, int64_t Tk) {
  if (target.elastic || 2 * Tq > Tk || heads < 1)
    return 1;
  const int64_t programs = cdiv(Tq, config.bm) * heads, blocks = cdiv(Tk, config.bn);
  return target.visit(
      [=](const CpuFacts &) {
        return static_cast<int>(
            std::clamp<int64_t>(cdiv(enoughPrograms, programs), 1, std::max<int64_t>(1, blocks / leastBlocks)));
      },
      [=](const GpuFacts &gpu) { return gpuKvSplitsOf(gpu, programs, blocks); });
}

/// A launch for the splits of the keys, and one that combines their results.
static Plan planSplits(const TensorRef &o, const TensorRef &lse, const AttentionConfig &config,
                       const AttentionExtents &s, std::vector<Arg> args) {
  const int64_t P = config.kvSplits, sums = P * s.B * s.H * s.Tq * s.D * bytesOf(f32);
  const Arg os = Arg::workspace(0, f32, {P, s.B * s.H, s.Tq, s.D}),
            lses = Arg::workspace(sums, f32, {P, s.B * s.H, s.Tq});
  args[3] = os;
  args[4] = lses;
  AttentionConfig joined;
  joined.bm = 1;
  joined.kvSplits = config.kvSplits;
  joined.warps = 2;
  return {.launches = {{&attentionSplitKernel, textOf(attentionSplitKernel.fields, config),
                        programs(P * cdiv(s.Tq, config.bm), s.H, s.B), std::move(args)},
                       {&attentionCombineKernel,
                        textOf(attentionCombineKernel.fields, joined),
                        programs(s.Tq, s.H, s.B),
                        {os, lses, o, lse}}},
          .workspaceBytes = sums + P * s.B * s.H * s.Tq * bytesOf(f32)};
}

/// Fewer keys a block where not all scores count and registers are scarce, so that none is spilled: of narrow types, of
/// which a warp multiplies most at once, and where a factor is two numbers. Where weights are dropped by chance, many
/// keys share a number of Philox, and more keys are worth more.
static void makeRoom(AttentionConfig &config, Type type) {
  const bool drops = config.drop == DropoutMode::random, isSmall = bytesOf(type) <= 2;
  if (drops && !isSmall)
    config.rowSumLanes = 1;
  if (drops && config.hasBounds && config.precision == Precision::tf32x3)
    config.bn = std::min(config.bn, 16);
  else if ((isSmall && !drops) || isSplit(config.precision))
    config.bn = std::min(config.bn, 32);
}

Plan planAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v, const TensorRef &o,
                   const TensorRef &lse, float scale, const AttentionMask &mask,
                   const std::optional<AttentionConfig> &config) {
  const AttentionExtents s = expectHeads("attention", q, k, v, o, mask, scale);
  expectSums("attention", lse, s);
  AttentionConfig picked = pickAttention(target, s.Tq, s.D, q.type, s.Tk);
  picked.kvSplits = pickKvSplits(target, picked, s.B * s.H, s.Tq, s.Tk);
  AttentionConfig chosen = configFor(config, picked, s, mask);
  chosen.longestFirst = chosen.longestFirst || (!config && takesLongestFirst(target, s, q.type, mask.causal));
  if (chosen.kvSplits > 1)
    chosen.longestFirst = false;
  if (!config && !chosen.isPlain())
    chosen.minCtasPerSm = 1;
  if (!config && chosen.kvSplits == 1 && chosen.chooses() && isByWarps(target, chosen, s.D, q.type))
    makeRoom(chosen, q.type);
  if (chosen.kvSplits < 1)
    throw Error("'attention': expected 'kv_splits' to be above 0, but got " + std::to_string(chosen.kvSplits));
  if (chosen.decode && chosen.bm != 1)
    throw Error("'attention': expected 'bm' to be 1 with 'decode', but got " + std::to_string(chosen.bm));
  std::vector<Arg> args = {q,
                           k,
                           v,
                           o,
                           target.varying(lse),
                           target.varying(mask.ranges.value_or(lse)),
                           target.varying(wholeMask(mask, s, lse)),
                           scale};
  appendDropout(args, mask, target.varying(lse));
  if (chosen.kvSplits > 1)
    return planSplits(o, lse, chosen, s, std::move(args));
  return {.launches = {{&attentionKernel, textOf(attentionKernel.fields, chosen),
                        turnsOf(chosen, cdiv(s.Tq, chosen.bm), s.H, s.B), args}}};
}

} // namespace kiln
