// Plans of flash attention: checks of operands, the config of a problem, and the launches.

#include "kernels/attention_plan.h"
#include "kernels/operands.h"

#include <string>

namespace kiln {

//===-- Checks and configs --------------------------------------------------------------------------------------===//

AttentionExtents expectHeads(const char *plan, const TensorRef &q, const TensorRef &k, const TensorRef &v,
                             const TensorRef &o, const Operand &lse, const AttentionMask &mask, float scale) {
  Operand bytes = mask.mask;
  bytes.broadcast = 2;
  const NamedExtents e = checkOperands(attentionKernel, {q, k, v, o, lse, mask.ranges, bytes}, plan);
  checkOperands(attentionBackwardKernel, {q, k, {}, {}, {}, {}, mask.queryRanges}, plan);
  const AttentionExtents s = {e["B"], e["H"], e["Hk"], e["Tq"], e["Tk"], e["D"]};
  if (s.Hk < 1 || s.H % s.Hk != 0)
    throw Error("'" + std::string(plan) + "': expected the number of heads of 'k' to divide that of 'q', but got " +
                std::to_string(s.Hk) + " and " + std::to_string(s.H));
  if (mask.dropout)
    expectWeights(plan, *mask.dropout, s);
  if (!(scale > 0))
    throw Error("'" + std::string(plan) + "': expected 'scale' to be above 0, but got " + std::to_string(scale));
  return s;
}

AttentionConfig configFor(const std::optional<AttentionConfig> &given, AttentionConfig picked,
                          const AttentionExtents &extents, const AttentionMask &mask) {
  const DropoutMode drop = chooseDropoutMode(mask.dropout);
  adaptToOptions(picked, drop, mask.mask.has_value());
  AttentionConfig config = given.value_or(picked);
  config.dropout = drop;
  config.causal = mask.causal;
  config.unequalLengths = extents.Tq != extents.Tk || (picked.unequalLengths && !mask.causal);
  config.hasBounds = mask.ranges.has_value();
  config.masked = mask.mask.has_value();
  config.group = static_cast<int>(extents.H / extents.Hk);
  return config;
}

void appendDropout(std::vector<Arg> &args, const AttentionMask &mask, const Arg &unused) {
  const Dropout d = mask.dropout.value_or(Dropout());
  const double scale = d.rngState ? d.rate.scale() : d.rate.evaluationScale();
  args.insert(args.end(), {d.rngState ? Arg(*d.rngState) : unused, Arg(d.maxLength), Arg(d.rate.threshold()),
                           Arg(static_cast<float>(scale))});
}

std::vector<Field> attentionFields() {
  return {
      field("bm", &AttentionConfig::bm, "rows of q a tile"),
      field("bn", &AttentionConfig::bn, "rows of k and v a tile"),
      field("causal", &AttentionConfig::causal,
            "causal mask (bottom right): row i attends to columns up to i + Tk − Tq"),
      field("unequal_lengths", &AttentionConfig::unequalLengths, "Tk is not Tq"),
      field("has_bounds", &AttentionConfig::hasBounds, "ranges bounds the keys of each query"),
      field("masked", &AttentionConfig::masked, "a byte mask selects the keys of each query"),
      field("group", &AttentionConfig::group, "query heads for each key/value head (GQA)"),
      field("dropout", &AttentionConfig::dropout, dropoutModeNames, "dropout: off, scale_only or random"),
      field("precision", &AttentionConfig::precision, precisionNames,
            "precision of f32 products: ieee, tf32, tf32x3 or bf16x3"),
      field("warps", &AttentionConfig::warps, "warps of a program, on a GPU"),
      field("row_sum_lanes", &AttentionConfig::rowSumLanes, "partial sums of the probabilities of a row"),
      field("decode", &AttentionConfig::decode, "decoding of one query: elementwise products, bm = 1"),
      field("kv_splits", &AttentionConfig::kvSplits, "programs that share the keys of a query (attention_split)"),
      field("longest_first", &AttentionConfig::longestFirst, "blocks of rows with the most keys are launched first"),
      field("stages", &AttentionConfig::stages, "pipeline stages of key and value blocks, on a GPU"),
      field("min_ctas_per_sm", &AttentionConfig::minCtasPerSm, "minimum resident CTAs per SM")};
}

//===-- Forward -------------------------------------------------------------------------------------------------===//

/// A launch for the parts of the keys, and one that combines their results.
static Plan planKvSplits(const TensorRef &o, const TensorRef &lse, const AttentionConfig &config,
                         const AttentionExtents &s, std::vector<Arg> args) {
  const int64_t P = config.kvSplits, outputs = P * s.B * s.H * s.Tq * s.D * bytesOf(f32);
  const Arg os = Arg::workspace(0, f32, {P, s.B * s.H, s.Tq, s.D}),
            lses = Arg::workspace(outputs, f32, {P, s.B * s.H, s.Tq});
  args[3] = os;
  args[4] = lses;
  AttentionConfig combine;
  combine.bm = 1;
  combine.kvSplits = config.kvSplits;
  combine.warps = 2;
  return {.launches = {makeLaunch(attentionSplitKernel, config, programs(P * cdiv(s.Tq, config.bm), s.H, s.B),
                                  std::move(args)),
                       makeLaunch(attentionCombineKernel, combine, programs(s.Tq, s.H, s.B), {os, lses, o, lse})},
          .workspaceBytes = outputs + P * s.B * s.H * s.Tq * bytesOf(f32)};
}

Plan planAttention(const Target &target, const TensorRef &q, const TensorRef &k, const TensorRef &v, const TensorRef &o,
                   const TensorRef &lse, float scale, const AttentionMask &mask,
                   const std::optional<AttentionConfig> &config) {
  const AttentionExtents s = expectHeads("attention", q, k, v, o, lse, mask, scale);
  AttentionConfig picked = pickAttention(target, s.Tq, s.D, q.type, s.Tk);
  picked.kvSplits = pickKvSplits(target, picked, s.B * s.H, s.Tq, s.Tk);
  AttentionConfig chosen = configFor(config, picked, s, mask);
  if (!config)
    adaptForward(target, s, q.type, chosen);
  if (chosen.kvSplits > 1)
    chosen.longestFirst = false;
  if (chosen.kvSplits < 1)
    throw Error("'attention': expected 'kv_splits' to be above 0, but got " + std::to_string(chosen.kvSplits));
  if (chosen.decode && chosen.bm != 1)
    throw Error("'attention': expected 'bm' to be 1 with 'decode', but got " + std::to_string(chosen.bm));
  const Arg ranges = target.varying(mask.ranges.value_or(lse)), bytes = target.varying(wholeMask(mask, s, lse));
  std::vector<Arg> args = {q, k, v, o, target.varying(lse), ranges, bytes, scale};
  appendDropout(args, mask, target.varying(lse));
  if (chosen.kvSplits > 1)
    return planKvSplits(o, lse, chosen, s, std::move(args));
  return {
      .launches = {makeLaunch(attentionKernel, chosen, attentionGrid(chosen, cdiv(s.Tq, chosen.bm), s.H, s.B), args)}};
}

//===-- Backward ------------------------------------------------------------------------------------------------===//

namespace {
/// The gradients, and lse and the mask's operands in the form of the launches. Delta is the first part of the
/// workspace.
struct Gradients {
  TensorRef dq, dk, dv;
  Arg lse, delta, ranges, queryRanges, mask;
};
} // namespace

/// One launch, one program for each (batch, key head). Workspace: delta, then the f32 sums of dQ where dq is narrower.
static Plan planWhole(const AttentionSaved &saved, const AttentionExtents &s, const Gradients &to, float scale,
                      const AttentionMask &mask, const AttentionConfig &config) {
  const int64_t bytes = saved.lse.count() * bytesOf(f32);
  const bool direct = to.dq.type == f32;
  const Arg dqSum = direct ? Arg(to.dq) : Arg::workspace(bytes, f32, s.queries());
  std::vector<Arg> args = {saved.q, saved.k,  saved.v, saved.o, saved.dout, to.lse, to.queryRanges,
                           to.mask, to.delta, dqSum,   to.dq,   to.dk,      to.dv,  scale};
  appendDropout(args, mask, to.lse);
  return {.launches = {makeLaunch(attentionBackwardKernel, config, programs(s.Hk, s.B), args)},
          .workspaceBytes = bytes + (direct ? 0 : bytes * s.D)};
}

/// Two launches: dQ and delta by blocks of queries, then dK and dV by blocks of keys. Workspace: delta.
static Plan planBlocks(const AttentionSaved &saved, const AttentionExtents &s, const Gradients &to, float scale,
                       const AttentionMask &mask, const BackwardConfigs &configs) {
  const auto &[q, k, v, o, lse, dout] = saved;
  AttentionConfig keys = configs.keys;
  keys.longestFirst = false; // blocks of keys are longest first already
  std::vector<Arg> ofKeys = {q, k, v, dout, to.lse, to.queryRanges, to.mask, to.delta, to.dk, to.dv, scale};
  std::vector<Arg> ofQueries = {q, k, v, o, dout, to.lse, to.ranges, to.mask, to.delta, to.dq, scale};
  for (std::vector<Arg> *args : {&ofKeys, &ofQueries})
    appendDropout(*args, mask, to.lse);
  const AttentionConfig &queries = configs.queries;
  return {.launches = {makeLaunch(attentionBackwardQueriesKernel, queries,
                                  attentionGrid(queries, cdiv(s.Tq, queries.bm), s.H, s.B), ofQueries),
                       makeLaunch(attentionBackwardKeysKernel, keys, programs(cdiv(s.Tk, keys.bn), s.Hk, s.B), ofKeys)},
          .workspaceBytes = lse.count() * bytesOf(f32)};
}

Plan planAttentionBackward(const Target &target, const AttentionSaved &saved, const TensorRef &dq, const TensorRef &dk,
                           const TensorRef &dv, float scale, const AttentionMask &mask,
                           const std::optional<AttentionConfig> &config) {
  const char *plan = "attention_backward";
  const auto &[q, k, v, o, lse, dout] = saved;
  const AttentionExtents s = expectHeads(plan, q, k, v, o, lse, mask, scale);
  checkOperands(attentionBackwardKernel, {q, k, v, o, dout, lse, mask.queryRanges, {}, {}, {}, dq, dk, dv});
  if (mask.ranges.has_value() != mask.queryRanges.has_value())
    throw Error("'attention_backward': 'ranges' and 'query_ranges' require each other, but got only one of them");
  AttentionConfig chosen = configFor(config, pickAttentionBackward(target, s.Tq, s.D, saved.q.type, s.Tk), s, mask);
  if (!config)
    chosen.longestFirst = takesLongestFirst(target, s, saved.q.type, mask.causal);
  const TensorRef &none = saved.lse;
  const Gradients to = {dq,
                        dk,
                        dv,
                        target.varying(saved.lse),
                        target.varying(Arg::workspace(0, f32, saved.lse.extents)),
                        target.varying(mask.ranges.value_or(none)),
                        target.varying(mask.queryRanges.value_or(none)),
                        target.varying(wholeMask(mask, s, none))};
  if (chosen.whole)
    return planWhole(saved, s, to, scale, mask, chosen);
  return planBlocks(saved, s, to, scale, mask,
                    config ? BackwardConfigs{chosen, chosen} : pickBackwardLaunches(target, chosen, s.D, saved.q.type));
}

} // namespace kiln
