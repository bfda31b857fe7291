// Cross-attention's launches.

#include "models/nn/cross_attention.h"
#include "kernels/plain_attention.h"
#include "models/nn/residual.h"

namespace kiln {

CrossAttention::CrossAttention(ParameterList &list, const CrossAttentionNames &names, int64_t width,
                               const AttentionOptions &options, const Inits &inits, const DropoutOptions &dropout,
                               int64_t context)
    : heads(options.heads), width(width), scale(static_cast<float>(options.scale)),
      isPlain(options.form == AttentionForm::plain),
      query(list, names.query, width, width, inits.attentionInput(width, width), options.linear),
      memory(list, names.memory, width, 2 * width, inits.attentionInput(width, 2 * width), options.linear),
      output(list, names.output, width, width, inits.attentionOutput(width), options.linear),
      residualSite(list, dropout.of(dropout.residual), context),
      weightSite(list, dropout.of(dropout.attention), context) {}

void CrossAttention::release(Build &b, Saved &s) const {
  for (SavedActivation *kept : {&s.q, &s.kv, &s.mixed, &s.sums})
    kept->release(b);
}

void CrossAttention::drop(Build &b, Saved &s) const {
  for (SavedActivation *kept : {&s.q, &s.kv, &s.mixed, &s.sums})
    kept->drop(b);
}

AttentionMask CrossAttention::maskIn(const Build &b, int64_t time) const {
  return {.causal = false,
          .ranges = repeatedRanges(b.memory->ranges, time),
          .queryRanges = b.memory->queryRanges,
          .dropout = weightSite.in(b)};
}

TensorRef CrossAttention::byHeads(const TensorRef &x, int64_t batch) const {
  return x.reshape({batch, x.extents[0] / batch, heads, width / heads}).permute({0, 2, 1, 3});
}

TensorRef CrossAttention::part(const TensorRef &kv, int64_t batch, int which) const {
  return kv.reshape({batch, kv.extents[0] / batch, 2, heads, width / heads}).select(2, which).permute({0, 2, 1, 3});
}

/// Adds the FLOPs of `products` products of all queries by all keys to attention's launches.
static Plan counted(Plan plan, double products, const TensorRef &q, const TensorRef &k) {
  plan.launches.back().flops = 2 * products * static_cast<double>(q.count()) * static_cast<double>(k.extents[2]);
  return plan;
}

void CrossAttention::begin(Build &b, const Reader &x, int64_t batch, int64_t time, Saved &s) const {
  const int64_t rows = b.memory->states.extents[0];
  const Shape weights = {batch, heads, time, rows / batch}, ofRows = {batch, heads, time};
  s.x = x;
  const auto ask = [this, &s](Build &b) { query.forward(b, s.x(b), *s.q); };
  const auto look = [this, &s](Build &b) { memory.forward(b, b.memory->states, *s.kv); };
  s.q.take(b, Site::qkv, "cross q", {batch * time, width}, ask);
  s.kv.take(b, Site::qkv, "cross kv", {rows, 2 * width}, look);
  s.mixed.take(b, Site::attention, "cross attention", {batch * time, width}, [this, &s](Build &b) { mix(b, s); });
  s.sums.take(b, Site::attention, isPlain ? "cross weights" : "cross log-sum-exp", f32, isPlain ? weights : ofRows, {});
  ask(b);
  look(b);
  mix(b, s);
}

void CrossAttention::mix(Build &b, Saved &s) const {
  const TensorRef all = s.q.get(b), kv = s.kv.get(b), sums = s.sums.place(b);
  const int64_t batch = sums.extents[0];
  const TensorRef q = byHeads(all, batch), k = part(kv, batch, 0), v = part(kv, batch, 1), o = byHeads(*s.mixed, batch);
  const AttentionMask mask = maskIn(b, q.extents[2]);
  b.plan += counted(isPlain ? planPlainAttention(b.target, q, k, v, o, sums, scale, mask)
                            : planAttention(b.target, q, k, v, o, sums, scale, mask),
                    2, q, k);
}

void CrossAttention::finish(Build &b, const TensorRef &residual, Saved &s, const TensorRef &y) const {
  output.forward(b, s.mixed.get(b), y, {.dropout = residualSite.in(b), .residual = residual});
}

void CrossAttention::infer(Build &b, const TensorRef &x, const TensorRef &residual, int64_t batch, int64_t time,
                           const TensorRef &y) const {
  Saved saved;
  begin(b, [=](Build &) { return x; }, batch, time, saved);
  finish(b, residual, saved, y);
  release(b, saved);
}

void CrossAttention::extend(Build &b, const TensorRef &x, const TensorRef &residual, const CrossKvCache &cache,
                            const TensorRef &y) const {
  const int64_t batch = cache.ranges.extents[0], time = x.extents[0] / batch;
  const TensorRef q = b.take("cross q", x.extents), mixed = b.take("cross attention", x.extents),
                  sums = b.takeStatistics("cross log-sum-exp", {batch, heads, time});
  query.forward(b, x, q);
  b.plan += planAttention(b.target, byHeads(q, batch), part(cache.kv, batch, 0), part(cache.kv, batch, 1),
                          byHeads(mixed, batch), sums, scale,
                          {.causal = false, .ranges = repeatedRanges(cache.ranges, time), .dropout = weightSite.in(b)});
  output.forward(b, mixed, y, {.dropout = residualSite.in(b), .residual = residual});
  for (const TensorRef *taken : {&q, &mixed, &sums})
    b.release(*taken);
}

void CrossAttention::backward(Build &b, const TensorRef &dy, Saved &s, const TensorRef &dx, bool add) const {
  const TensorRef dout = takeDropped(b, residualSite, dy), mixed = s.mixed.get(b);
  output.weightGradient(b, mixed, dout);
  const TensorRef all = s.q.get(b), kv = s.kv.get(b), sums = *s.sums;
  const TensorRef dmixed = b.take("d cross attention", mixed.extents), dq = b.take("d cross q", all.extents),
                  dkv = b.take("d cross kv", kv.extents);
  output.inputGradient(b, dout, dmixed);
  releaseDropped(b, residualSite, dout);
  const int64_t batch = sums.extents[0];
  const TensorRef q = byHeads(all, batch), k = part(kv, batch, 0), v = part(kv, batch, 1), dk = part(dkv, batch, 0),
                  dv = part(dkv, batch, 1), dheads = byHeads(dmixed, batch);
  const AttentionMask mask = maskIn(b, q.extents[2]);
  b.plan += counted(
      isPlain ? planPlainAttentionBackward(b.target, {q, k, v, sums, dheads}, byHeads(dq, batch), dk, dv, scale, mask)
              : planAttentionBackward(b.target, {q, k, v, byHeads(mixed, batch), sums, dheads}, byHeads(dq, batch), dk,
                                      dv, scale, mask),
      5, q, k);
  b.release(dmixed);
  release(b, s);
  query.weightGradient(b, s.x(b), dq);
  query.inputGradient(b, dq, dx, add);
  b.release(dq);
  memory.weightGradient(b, b.memory->states, dkv);
  const bool isFirst = !b.memory->gradient;
  if (isFirst)
    b.memory->gradient = b.take("d memory", b.memory->states.extents);
  memory.inputGradient(b, dkv, *b.memory->gradient, /*add=*/!isFirst);
  b.release(dkv);
}

} // namespace kiln
