// The backward pass of flash attention, in two plans. On a CPU one program does a whole head: it walks keys outside and
// queries inside, and adds to dQ block by block. On a GPU that would leave most of the machine without work: there one
// launch computes delta and dQ by blocks of queries, and one dK and dV by blocks of keys; scores are computed twice,
// and nothing is added by two programs.
//
// With P = exp2(S · scale2 − lse), dP = dO · Vᵀ and delta = rowsum(dO ∘ O):
//
//     dV = Pᵀ · dO      dS = P ∘ (dP − delta)      dK = scale · dSᵀ · Q      dQ = scale · dS · K
//
// With dropout of the weights, P̃ = P ∘ M · s where M is what was kept and s its scale: dV = P̃ᵀ · dO and
// dP = (dO · Vᵀ) ∘ M · s. delta stays right, for O was made of P̃.

#include "kernels/heads.h"
#include "kernels/rows.h"

#include <cmath>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

namespace {
/// A tile of probabilities, those that dropout takes zero too, and of the gradient of the scores, zero where nothing is
/// seen.
struct Scores {
  Tile p, ds;
};

/// Where a tile of scores is, and what says what becomes of it.
struct Place {
  Tile m, n;
  const Sight &sight;
  const WeightDropout &dropout;
  const AttentionConfig &cfg;
};
} // namespace

/// The exponents of the probabilities. Either spelling gives the same numbers: a GPU's instructions turn the signs of
/// results by themselves, but not those of numbers from memory, and a CPU's turn neither, of which lse is fewer.
static Tile exponentsOf(Tile products, Tile lse, Tile scale, bool onResults) {
  return onResults ? -fma(products, scale * -M_LOG2E, lse) : fma(products, scale * M_LOG2E, -lse);
}

/// Of rows (BX, D) against columns (BY, D): queries against keys with their gradients `dout` against values, or, with
/// `turned`, the other way round. `lse` and `delta` are (BX, 1) or (1, BY); both results (BX, BY). With `byBlocks` the
/// gradient is that of the scaled scores, and what is summed of it is scaled at the end.
static Scores scoresOf(Tile rows, Tile columns, Tile gradRows, Tile gradColumns, Tile lse, Tile delta, Tile scale,
                       const Place &at, bool byBlocks, bool turned) {
  const AttentionConfig &cfg = at.cfg;
  const auto put = [&](const std::optional<Tile> &mask) { return mask && turned ? transpose(*mask) : mask; };
  const std::optional<Tile> seen = put(visible(at.m, at.n, at.sight, cfg)), // (BX, BY)
      kept = put(keptWeights(at.m, at.n, at.sight.h, at.dropout, cfg));     // (BX, BY)

  // 1. The probabilities again. Queries that see no key have lse = ∞. Those from Tq on are zeros, and so are their
  //    gradients: nothing comes of their probabilities.
  Tile products = dot(rows, transpose(columns), cfg.precision);                             // (BX, BY)
  Tile p = masked(seen, exp2(exponentsOf(products, lse, scale, byBlocks), Accuracy::fast)); // (BX, BY)

  // 2. The gradient: masked too, so that nobody needs dP where P is zero.
  Tile dp = masked(kept, scaled(dot(gradRows, transpose(gradColumns), cfg.precision), at.dropout, cfg)); // (BX, BY)
  Tile ds = p * (dp - delta);
  return {masked(kept, p), masked(seen, byBlocks ? ds : ds * scale)}; // zeros times a scale might be others than zeros
}

/// delta of the queries from m on, whose gradients are `grad`.
static Tile deltaOf(View o, Tile grad, Tile b, Tile h, Tile m, Shape queries) {
  Tile out = cast(load(o, {b, h, m, 0}, queries), f32); // (BM, D)
  return sum(cast(grad, f32) * out);                    // (BM)
}

/// The heads of queries that share head `hk` of keys, one after the other.
template <class Body> static void forHeads(Tile hk, const AttentionConfig &cfg, Body body) {
  if (cfg.group == 1)
    return body(hk);
  for (Tile g : range(cfg.group))
    body(hk * cfg.group + g);
}

/// What queries see the keys from n on, in `sight`.
static void look(Sight &sight, View columnRanges, Tile n, const AttentionConfig &cfg) {
  if (!cfg.hasBounds)
    return;
  auto [from, to] = rangesOf(columnRanges, sight.b, n, cfg.bn, sight.Tq); // (BN, 1)
  sight.from = transpose(from), sight.to = transpose(to);                 // (1, BN)
}

/// One program a (batch, head of keys). q, o, dout, dq (B, H, Tq, D), k, v, dk, dv (B, Hk, Tk, D), lse and delta
/// (B, H, Tq). dQ is summed in `dqSum`, which is f32: dq itself when that is f32.
static void attentionBackward(View q, View k, View v, View o, View dout, View lse, View columnRanges, View mask,
                              View delta, View dqSum, View dq, View dk, View dv, Tile scale, View site, Tile most,
                              Tile threshold, Tile keptScale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o, dout, dqSum, dq, dk, dv});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  Tile hk = program_id(0), b = program_id(1), Tq = q.dim(2), Tk = keysIn(k, q, cfg);
  const WeightDropout dropout = dropoutFrom(site, most, threshold, keptScale, b, q.dim(1), cfg);

  // 1. delta, for every row once; dQ begins at zero.
  forHeads(hk, cfg, [&](Tile h) {
    for (Tile m : range(0, Tq, cfg.bm)) {
      Tile grad = load(dout, {b, h, m, 0}, queries);               // (BM, D)
      store(delta, {b, h, m}, deltaOf(o, grad, b, h, m, queries)); // (BM)
      store(dqSum, {b, h, m, 0}, zeros(f32, queries));
    }
  });

  for (Tile n : range(0, Tk, cfg.bn)) {
    Tile key = load(k, {b, hk, n, 0}, keys);                 // (BN, D)
    Tile value = load(v, {b, hk, n, 0}, keys);               // (BN, D)
    Tile dkey = zeros(f32, keys), dvalue = zeros(f32, keys); // (BN, D)
    Sight sight = {.mask = mask, .b = b, .h = hk, .Tq = Tq, .Tk = Tk, .byQueries = false};
    look(sight, columnRanges, n, cfg);
    auto [first, end] = queriesOf(n, columnRanges, sight, cfg);
    forHeads(hk, cfg, [&](Tile h) {
      Sight here = sight;
      here.h = h;
      for (Tile m : range(first, end, cfg.bm)) {
        // 2. Probabilities and the gradient of the scores.
        Tile query = load(q, {b, h, m, 0}, queries);   // (BM, D)
        Tile grad = load(dout, {b, h, m, 0}, queries); // (BM, D)
        Tile base = load(lse, {b, h, m}, {cfg.bm});    // (BM)
        Tile own = load(delta, {b, h, m}, {cfg.bm});   // (BM)
        auto [p, ds] = scoresOf(query, key, grad, value, unsqueeze(base, -1), unsqueeze(own, -1), scale,
                                {m, n, here, dropout, cfg}, /*byBlocks=*/false, /*turned=*/false); // (BM, BN)

        // 3. dV and dK, and this block of keys' share of dQ. The order of the shares is that of the outer loop.
        dvalue = dot(transpose(cast(p, dout.type())), grad, dvalue, cfg.precision); // (BN, D)
        Tile dscore = cast(ds, q.type());                                           // (BM, BN)
        dkey = dot(transpose(dscore), query, dkey, cfg.precision);                  // (BN, D)
        store(dqSum, {b, h, m, 0}, dot(dscore, key, load(dqSum, {b, h, m, 0}, queries), cfg.precision));
      }
    });
    store(dk, {b, hk, n, 0}, cast(dkey, dk.type()));
    store(dv, {b, hk, n, 0}, cast(scaled(dvalue, dropout, cfg), dv.type()));
  }

  // 4. Narrow storage: round the finished sums.
  if (dq.type() == f32)
    return;
  forHeads(hk, cfg, [&](Tile h) {
    for (Tile m : range(0, Tq, cfg.bm))
      store(dq, {b, h, m, 0}, cast(load(dqSum, {b, h, m, 0}, queries), dq.type()));
  });
}

/// dK and dV of a block of keys. Scores are turned, (BN, BM), so that they are the left factors of both as they are.
/// Keys from Tk on need no mask: all that comes of them are rows that are not stored.
static void attentionBackwardKeys(View q, View k, View v, View dout, View lse, View columnRanges, View mask, View delta,
                                  View dk, View dv, Tile scale, View site, Tile most, Tile threshold, Tile keptScale,
                                  AttentionConfig cfg) {
  const int64_t D = width({q, k, v, dout, dk, dv});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  Tile n = program_id(0) * cfg.bn, hk = program_id(1), b = program_id(2);
  const WeightDropout dropout = dropoutFrom(site, most, threshold, keptScale, b, q.dim(1), cfg);
  Tile key = load(k, {b, hk, n, 0}, keys);                 // (BN, D)
  Tile value = load(v, {b, hk, n, 0}, keys);               // (BN, D)
  Tile dkey = zeros(f32, keys), dvalue = zeros(f32, keys); // (BN, D)
  Sight sight = {
      .mask = mask, .b = b, .h = hk, .Tq = q.dim(2), .Tk = keysIn(k, q, cfg), .byQueries = false, .anyKeys = true};
  look(sight, columnRanges, n, cfg);
  auto [first, end] = queriesOf(n, columnRanges, sight, cfg);
  forHeads(hk, cfg, [&](Tile h) {
    Sight here = sight;
    here.h = h;
    for (Tile m : range(first, end, cfg.bm)) {
      Tile query = load(q, {b, h, m, 0}, queries);   // (BM, D)
      Tile grad = load(dout, {b, h, m, 0}, queries); // (BM, D)
      Tile base = load(lse, {b, h, m}, {cfg.bm});    // (BM)
      Tile own = load(delta, {b, h, m}, {cfg.bm});   // (BM)
      auto [p, ds] = scoresOf(key, query, value, grad, unsqueeze(base, 0), unsqueeze(own, 0), scale,
                              {m, n, here, dropout, cfg}, /*byBlocks=*/true, /*turned=*/true); // (BN, BM)
      dvalue = dot(cast(p, dout.type()), grad, dvalue, cfg.precision);                         // (BN, D)
      dkey = dot(cast(ds, q.type()), query, dkey, cfg.precision);                              // (BN, D)
    }
  });
  store(dk, {b, hk, n, 0}, cast(dkey * scale, dk.type()));
  store(dv, {b, hk, n, 0}, cast(scaled(dvalue, dropout, cfg), dv.type()));
}

/// delta and dQ of a block of queries.
static void attentionBackwardQueries(View q, View k, View v, View o, View dout, View lse, View ranges, View mask,
                                     View delta, View dq, Tile scale, View site, Tile most, Tile threshold,
                                     Tile keptScale, AttentionConfig cfg) {
  const int64_t D = width({q, k, v, o, dout, dq});
  const Shape queries = {cfg.bm, D}, keys = {cfg.bn, D};
  auto [block, h, b] = turnOf(cfg);
  Tile m = block * cfg.bm, hk = keyHeadOf(h, cfg);
  const WeightDropout dropout = dropoutFrom(site, most, threshold, keptScale, b, q.dim(1), cfg);
  Sight sight = {.mask = mask, .b = b, .h = h, .Tq = q.dim(2), .Tk = keysIn(k, q, cfg), .byQueries = true};
  lookByQueries(sight, ranges, m, cfg);
  Tile query = load(q, {b, h, m, 0}, queries);   // (BM, D)
  Tile grad = load(dout, {b, h, m, 0}, queries); // (BM, D)
  Tile base = load(lse, {b, h, m}, {cfg.bm});    // (BM)
  Tile own = deltaOf(o, grad, b, h, m, queries); // (BM)
  store(delta, {b, h, m}, own);
  Tile dquery = zeros(f32, queries); // (BM, D)
  auto [first, end] = keysOf(m, ranges, sight, cfg);
  for (Tile n : range(first, end, cfg.bn)) {
    Tile key = load(k, {b, hk, n, 0}, keys);   // (BN, D)
    Tile value = load(v, {b, hk, n, 0}, keys); // (BN, D)
    auto [p, ds] = scoresOf(query, key, grad, value, unsqueeze(base, -1), unsqueeze(own, -1), scale,
                            {m, n, sight, dropout, cfg}, /*byBlocks=*/true, /*turned=*/false); // (BM, BN)
    dquery = dot(cast(ds, q.type()), key, dquery, cfg.precision);                              // (BM, D)
  }
  store(dq, {b, h, m, 0}, cast(dquery * scale, dq.type()));
}

static const char *const ofRanges =
                             "ranges (B, Tq, 2) i32, read with has_bounds: a row sees columns from [0] and below [1]",
                         *const ofColumns =
                             "column_ranges (B, Tk, 2) i32, read with has_bounds: the rows that see a column",
                         *const ofMask =
                             "mask (B, H, Tq, Tk) i8, read when masked: a row sees the columns that are not 0",
                         *const ofLse = "lse (B, H, Tq) f32, the forward pass's";

const Kernel attentionBackwardKernel =
    kernel("attention_backward", attentionBackward,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D)", "v (B, Hk, Tk, D)", "o (B, H, Tq, D), the forward pass's",
            "dout (B, H, Tq, D)", ofLse, ofColumns, ofMask, "delta (B, H, Tq) f32, scratch",
            "dq_sum (B, H, Tq, D) f32, scratch, or dq itself", "dq (B, H, Tq, D)", "dk (B, Hk, Tk, D)",
            "dv (B, Hk, Tk, D)", "scale f32", ofSite, ofMost, ofThreshold, ofKeptScale},
           attentionFields());
const Kernel attentionBackwardKeysKernel =
    kernel("attention_backward_keys", attentionBackwardKeys,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D)", "v (B, Hk, Tk, D)", "dout (B, H, Tq, D)", ofLse, ofColumns, ofMask,
            "delta (B, H, Tq) f32", "dk (B, Hk, Tk, D)", "dv (B, Hk, Tk, D)", "scale f32", ofSite, ofMost, ofThreshold,
            ofKeptScale},
           attentionFields());
const Kernel attentionBackwardQueriesKernel =
    kernel("attention_backward_queries", attentionBackwardQueries,
           {"q (B, H, Tq, D)", "k (B, Hk, Tk, D)", "v (B, Hk, Tk, D)", "o (B, H, Tq, D), the forward pass's",
            "dout (B, H, Tq, D)", ofLse, ofRanges, ofMask, "delta (B, H, Tq) f32, row sums of o · dout",
            "dq (B, H, Tq, D)", "scale f32", ofSite, ofMost, ofThreshold, ofKeptScale},
           attentionFields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// On a GPU: 64 rows of both, of which a warp has 16, the rows of an instruction: scores and their gradients, left
/// factors of the next products, stay in its registers. Where groups of four warps read the right factors from shared
/// memory, an SM has room for three programs that sum dQ. What is wider does not fit these: keys, values and both of
/// their sums are held beside the queries, of which there are fewer then.
static AttentionConfig gpuBackwardTilesOf(const GpuFacts &gpu, int64_t T, int64_t D, Type type) {
  AttentionConfig config;
  if (bytesOf(type) > 2 || D > 64) {
    config = gpuTilesOf(gpu, T, D);
    config.bm = std::max(16, config.bm / 2);
    config.warps = 8;
  } else {
    while (config.bm > 16 && config.bm / 2 >= T)
      config.bm /= 2;
    config.bn = config.bm;
    config.warps = config.bm / 16;
    config.minCtasPerSm = isForGroups(gpu, D, type) ? 3 : 1;
  }
  config.whole = false;
  return config;
}

AttentionConfig pickAttentionBackward(const Target &target, int64_t Tq, int64_t D, Type type,
                                      const std::optional<int64_t> &keys) {
  int64_t Tk = keys.value_or(Tq);
  if (target.elastic) // as forward
    Tk = Tq = target.lengthBucket(std::max(Tq, Tk));
  const int64_t longest = std::max(Tq, Tk);
  AttentionConfig config = target.visit([=](const CpuFacts &) { return tilesOf(64, Tk <= 128 ? 64 : 128, Tq, Tk); },
                                        [=](const GpuFacts &gpu) { return gpuBackwardTilesOf(gpu, longest, D, type); });
  config.precision = target.precisionOf(type);
  config.bn = keysOfBlock(config);
  if (isSplit(config.precision) && D <= 64) // such a program fills an SM by its registers: what else it holds is free
    config.stages = 3;
  config.unequalLengths = target.elastic;
  return config;
}

namespace {
/// The results, and the sums and the mask's operands as launches take them. Delta begins the workspace.
struct Gradients {
  TensorRef dq, dk, dv;
  Arg lse, delta, ranges, columnRanges, mask;
};
} // namespace

/// One launch, one program a (batch, head of keys). Workspace: delta, then the f32 sums of dQ where dq is narrower.
static Plan planWhole(const AttentionSaved &saved, const AttentionExtents &s, const Gradients &to, float scale,
                      const AttentionMask &mask, const AttentionConfig &config) {
  const int64_t bytes = saved.lse.count() * bytesOf(f32);
  const bool direct = to.dq.type == f32;
  const Arg dqSum = direct ? Arg(to.dq) : Arg::workspace(bytes, f32, s.queries());
  std::vector<Arg> args = {saved.q, saved.k,  saved.v, saved.o, saved.dout, to.lse, to.columnRanges,
                           to.mask, to.delta, dqSum,   to.dq,   to.dk,      to.dv,  scale};
  appendDropout(args, mask, to.lse);
  return {.launches = {{&attentionBackwardKernel, textOf(attentionBackwardKernel.fields, config), programs(s.Hk, s.B),
                        args}},
          .workspaceBytes = bytes + (direct ? 0 : bytes * s.D)};
}

/// Whether tensor cores multiply that by NVIDIA's rates take longer than what more rounds cost: blocks may be smaller
/// then, so that no register is spilled.
static bool isSlow(const Target &target, const AttentionConfig &config, Type type) {
  const bool isExact = type == f32 && config.precision == Precision::ieee;
  return target.visit([](const CpuFacts &) { return false; },
                      [=](const GpuFacts &gpu) { return gpu.isForGraphics() && !isExact; });
}

namespace {
/// The configs of the two launches.
struct Blocks {
  AttentionConfig queries, keys;
};
} // namespace

/// What is picked for each launch. Limits, what is dropped, and a loop over heads take registers: fewer scores are held
/// beside them.
static Blocks blocksOf(const Target &target, const AttentionConfig &config, int64_t D, Type type) {
  Blocks blocks = {config, config};
  auto &[queries, keys] = blocks;
  keys.minCtasPerSm = 1;
  if (!config.isPlain())
    queries.minCtasPerSm = 1;
  const bool isFull = config.drop == DropoutMode::random || config.group > 1, slow = isSlow(target, config, type),
             tight = bytesOf(type) <= 2 && isByWarps(target, config, D, type) && config.chooses();
  if (isFull || slow || tight)
    queries.bn = std::min(config.bn, 32);
  if (isFull || slow || tight || config.hasBounds)
    keys.bm = std::min(config.bm, 32);
  if ((isSplit(config.precision) && (isFull || slow || config.hasBounds)) || (slow && config.group > 1) ||
      (tight && isFull))
    keys.bm = std::min(config.bm, 16);
  if (config.group > 1) // whose loop over heads leaves no register for one more block
    keys.stages = std::min(config.stages, 2);
  return blocks;
}

/// Two launches, by blocks. Workspace: delta.
static Plan planBlocks(const AttentionSaved &saved, const AttentionExtents &s, const Gradients &to, float scale,
                       const AttentionMask &mask, const Blocks &blocks) {
  const auto &[q, k, v, o, lse, dout] = saved;
  AttentionConfig keys = blocks.keys;
  keys.longestFirst = false; // these are in order of what they have to do
  std::vector<Arg> ofKeys = {q, k, v, dout, to.lse, to.columnRanges, to.mask, to.delta, to.dk, to.dv, scale};
  std::vector<Arg> ofQueries = {q, k, v, o, dout, to.lse, to.ranges, to.mask, to.delta, to.dq, scale};
  for (std::vector<Arg> *args : {&ofKeys, &ofQueries})
    appendDropout(*args, mask, to.lse);
  const AttentionConfig &queries = blocks.queries;
  return {.launches = {{&attentionBackwardQueriesKernel, textOf(attentionFields(), queries),
                        turnsOf(queries, cdiv(s.Tq, queries.bm), s.H, s.B), ofQueries},
                       {&attentionBackwardKeysKernel, textOf(attentionFields(), keys),
                        programs(cdiv(s.Tk, keys.bn), s.Hk, s.B), ofKeys}},
          .workspaceBytes = lse.count() * bytesOf(f32)};
}

Plan planAttentionBackward(const Target &target, const AttentionSaved &saved, const TensorRef &dq, const TensorRef &dk,
                           const TensorRef &dv, float scale, const AttentionMask &mask,
                           const std::optional<AttentionConfig> &config) {
  const char *plan = "attention_backward";
  const AttentionExtents s = expectHeads(plan, saved.q, saved.k, saved.v, saved.o, mask, scale);
  expectSums(plan, saved.lse, s);
  expectShape(plan, "dout", saved.dout, s.queries());
  expectType(plan, "dout", saved.dout, {saved.q.type});
  expectShape(plan, "dq", dq, s.queries());
  expectShape(plan, "dk", dk, s.keys());
  expectShape(plan, "dv", dv, s.keys());
  if (mask.ranges.has_value() != mask.columnRanges.has_value())
    throw Error("'attention_backward': 'ranges' and 'columnRanges' require each other, but got only one of them");
  AttentionConfig chosen = configFor(config, pickAttentionBackward(target, s.Tq, s.D, saved.q.type, s.Tk), s, mask);
  chosen.longestFirst = chosen.longestFirst || (!config && takesLongestFirst(target, s, saved.q.type, mask.causal));
  const TensorRef &none = saved.lse;
  const Gradients to = {dq,
                        dk,
                        dv,
                        target.varying(saved.lse),
                        target.varying(Arg::workspace(0, f32, saved.lse.extents)),
                        target.varying(mask.ranges.value_or(none)),
                        target.varying(mask.columnRanges.value_or(none)),
                        target.varying(wholeMask(mask, s, none))};
  if (chosen.whole)
    return planWhole(saved, s, to, scale, mask, chosen);
  return planBlocks(saved, s, to, scale, mask,
                    config ? Blocks{chosen, chosen} : blocksOf(target, chosen, s.D, saved.q.type));
}

} // namespace kiln
