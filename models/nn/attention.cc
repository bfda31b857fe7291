// Attention's launches. Heads are views into the packed projection; nothing is transposed in memory.

#include "models/nn/attention.h"
#include "kernels/cache_append.h"
#include "kernels/plain_attention.h"
#include "models/nn/residual.h"

namespace kiln {

/// Number of (T, T, D) products that an attention kernel computes for each head, in halves: causal flash attention
/// computes about one half of each.
static int productsOf(const Kernel &kernel) {
  return &kernel == &attentionKernel                  ? 2 // q · kᵀ, p · v
         : &kernel == &attentionBackwardKernel        ? 5 // q · kᵀ again, dout · vᵀ; dq, dk, dv
         : &kernel == &attentionBackwardKeysKernel    ? 4 // those five, without dq
         : &kernel == &attentionBackwardQueriesKernel ? 3 // those five, without dk and dv
         : &kernel == &headProductKernel              ? 2 // one product, in full
                                                      : 0;
}

/// Adds the FLOPs of the products to attention's launches.
static Plan counted(Plan plan, int64_t sequences, int64_t time, int64_t width) {
  for (Launch &launch : plan.launches)
    launch.flops =
        productsOf(*launch.kernel) * static_cast<double>(sequences * time) * static_cast<double>(time * width);
  return plan;
}

Attention::Attention(ParameterList &list, const AttentionNames &names, int64_t width, const AttentionOptions &options,
                     const Inits &inits, const DropoutOptions &dropout, int64_t context)
    : heads(options.heads), width(width), scale(static_cast<float>(options.scale)),
      isPlain(options.form == AttentionForm::plain),
      input(list, names.input, width, 3 * width, inits.attentionInput(width, 3 * width), options.linear),
      output(list, names.output, width, width, inits.attentionOutput(width), options.linear),
      residualSite(list, dropout.of(dropout.residual), context),
      weightSite(list, dropout.of(dropout.attention), context) {}

void Attention::release(Build &b, Saved &s) const {
  s.qkv.release(b);
  s.mixed.release(b);
  s.sums.release(b);
}

void Attention::drop(Build &b, Saved &s) const {
  s.qkv.drop(b);
  s.mixed.drop(b);
  s.sums.drop(b);
}

AttentionMask Attention::maskIn(const Build &b) const {
  return {.causal = !b.ranges, .ranges = b.ranges, .queryRanges = b.queryRanges, .dropout = weightSite.in(b)};
}

TensorRef Attention::part(const TensorRef &qkv, const TensorRef &sums, int which) const {
  const int64_t batch = sums.extents[0], time = sums.extents[2];
  return qkv.reshape({batch, time, 3, heads, width / heads}).select(2, which).permute({0, 2, 1, 3});
}

TensorRef Attention::byHeads(const TensorRef &x, const TensorRef &sums) const {
  return x.reshape({sums.extents[0], sums.extents[2], heads, width / heads}).permute({0, 2, 1, 3});
}

void Attention::begin(Build &b, const Reader &x, int64_t batch, int64_t time, Saved &s) const {
  const Shape weights = {batch, heads, time, time}, ofRows = {batch, heads, time};
  s.x = x;
  const auto project = [this, &s](Build &b) { input.forward(b, s.x(b), *s.qkv); };
  s.qkv.take(b, Site::qkv, "qkv", {batch * time, 3 * width}, project);
  s.mixed.take(b, Site::attention, "attention", {batch * time, width}, [this, &s](Build &b) { mix(b, s); });
  s.sums.take(b, Site::attention, isPlain ? "weights" : "log-sum-exp", f32, isPlain ? weights : ofRows, {});
  project(b);
  mix(b, s);
}

void Attention::mix(Build &b, Saved &s) const {
  const TensorRef qkv = s.qkv.get(b), sums = s.sums.place(b);
  const TensorRef q = part(qkv, sums, 0), k = part(qkv, sums, 1), v = part(qkv, sums, 2), o = byHeads(*s.mixed, sums);
  b.plan += counted(isPlain ? planPlainAttention(b.target, q, k, v, o, sums, scale, maskIn(b))
                            : planAttention(b.target, q, k, v, o, sums, scale, maskIn(b)),
                    sums.extents[0], sums.extents[2], width);
}

void Attention::finish(Build &b, const TensorRef &residual, Saved &s, const TensorRef &y) const {
  output.forward(b, s.mixed.get(b), y, {.dropout = residualSite.in(b), .residual = residual});
}

void Attention::infer(Build &b, const TensorRef &x, const TensorRef &residual, int64_t batch, int64_t time,
                      const TensorRef &y) const {
  Saved saved;
  begin(b, [=](Build &) { return x; }, batch, time, saved);
  finish(b, residual, saved, y);
  release(b, saved);
}

void Attention::extend(Build &b, const TensorRef &x, const TensorRef &residual, const KvCache &cache,
                       const TensorRef &y) const {
  const int64_t batch = cache.starts.extents[0], time = x.extents[0] / batch;
  const TensorRef qkv = b.take("qkv", {batch * time, 3 * width}), mixed = b.take("attention", {batch * time, width}),
                  sums = b.takeStatistics("log-sum-exp", {batch, heads, time});
  input.forward(b, x, qkv);
  b.plan += planCacheAppend(b.target, part(qkv, sums, 1), part(qkv, sums, 2), cache.starts, cache.keys, cache.values);
  b.plan += planAttention(b.target, part(qkv, sums, 0), cache.keys, cache.values, byHeads(mixed, sums), sums, scale,
                          {.causal = false, .ranges = cache.ranges, .dropout = weightSite.in(b)});
  output.forward(b, mixed, y, {.dropout = residualSite.in(b), .residual = residual});
  b.release(qkv);
  b.release(mixed);
  b.release(sums);
}

void Attention::backward(Build &b, const TensorRef &dy, Saved &s, const TensorRef &dx, bool add) const {
  const TensorRef dout = takeDropped(b, residualSite, dy), mixed = s.mixed.get(b);
  output.weightGradient(b, mixed, dout);
  const TensorRef qkv = s.qkv.get(b), sums = *s.sums;
  const TensorRef dmixed = b.take("d attention", mixed.extents), dqkv = b.take("d qkv", qkv.extents);
  output.inputGradient(b, dout, dmixed);
  releaseDropped(b, residualSite, dout);
  const AttentionSaved all = {part(qkv, sums, 0),   part(qkv, sums, 1), part(qkv, sums, 2), byHeads(mixed, sums), sums,
                              byHeads(dmixed, sums)};
  const TensorRef dq = part(dqkv, sums, 0), dk = part(dqkv, sums, 1), dv = part(dqkv, sums, 2);
  b.plan += counted(isPlain ? planPlainAttentionBackward(b.target, {all.q, all.k, all.v, sums, all.dout}, dq, dk, dv,
                                                         scale, maskIn(b))
                            : planAttentionBackward(b.target, all, dq, dk, dv, scale, maskIn(b)),
                    sums.extents[0], sums.extents[2], width);
  b.release(dmixed);
  release(b, s);
  input.weightGradient(b, s.x(b), dqkv);
  input.inputGradient(b, dqkv, dx, add);
  b.release(dqkv);
}

} // namespace kiln
