// Attention's launches. Heads are views into the packed projection; nothing is transposed in memory.

#include "models/nn/attention.h"
#include "kernels/cache_append.h"
#include "kernels/plain_attention.h"
#include "models/nn/residual.h"

namespace kiln {

/// Products of queries by keys, or of as many numbers, that an attention kernel computes for each head, by halves:
/// flash attention computes about one half of each.
static int productsOf(const Kernel &kernel) {
  return &kernel == &attentionKernel                  ? 2 // q · kᵀ, p · v
         : &kernel == &attentionBackwardKernel        ? 5 // q · kᵀ again, dout · vᵀ; dq, dk, dv
         : &kernel == &attentionBackwardKeysKernel    ? 4 // the same but dq
         : &kernel == &attentionBackwardQueriesKernel ? 3 // … but dk and dv
         : &kernel == &headProductKernel              ? 2 // one of them, all of it
                                                      : 0;
}

/// Attention's launches with the operations of its products.
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

Attention::Saved Attention::take(Build &b, int64_t batch, int64_t time) const {
  TensorRef qkv = b.take("qkv", {batch * time, 3 * width});
  TensorRef mixed = b.take("attention", {batch * time, width});
  return {qkv, mixed,
          isPlain ? b.takeStatistics("weights", {batch, heads, time, time})
                  : b.takeStatistics("log-sum-exp", {batch, heads, time})};
}

void Attention::release(Build &b, const Saved &saved) const {
  b.release(saved.qkv);
  b.release(saved.mixed);
  b.release(saved.sums);
}

AttentionMask Attention::maskIn(const Build &b) const {
  return {.causal = !b.ranges, .ranges = b.ranges, .columnRanges = b.columnRanges, .dropout = weightSite.in(b)};
}

TensorRef Attention::part(const TensorRef &qkv, const TensorRef &sums, int which) const {
  const int64_t batch = sums.extents[0], time = sums.extents[2];
  return qkv.reshape({batch, time, 3, heads, width / heads}).select(2, which).permute({0, 2, 1, 3});
}

TensorRef Attention::byHeads(const TensorRef &x, const TensorRef &sums) const {
  return x.reshape({sums.extents[0], sums.extents[2], heads, width / heads}).permute({0, 2, 1, 3});
}

void Attention::forward(Build &b, const TensorRef &x, const TensorRef &residual, const Saved &s,
                        const TensorRef &y) const {
  input.forward(b, x, s.qkv);
  const TensorRef q = part(s.qkv, s.sums, 0), k = part(s.qkv, s.sums, 1), v = part(s.qkv, s.sums, 2),
                  o = byHeads(s.mixed, s.sums);
  b.plan += counted(isPlain ? planPlainAttention(b.target, q, k, v, o, s.sums, scale, maskIn(b))
                            : planAttention(b.target, q, k, v, o, s.sums, scale, maskIn(b)),
                    s.sums.extents[0], s.sums.extents[2], width);
  output.forward(b, s.mixed, y, {.dropout = residualSite.in(b), .residual = residual});
}

void Attention::extend(Build &b, const TensorRef &x, const TensorRef &residual, const Past &past,
                       const TensorRef &y) const {
  const int64_t batch = past.starts.extents[0], time = x.extents[0] / batch;
  const TensorRef qkv = b.take("qkv", {batch * time, 3 * width}), mixed = b.take("attention", {batch * time, width}),
                  sums = b.takeStatistics("log-sum-exp", {batch, heads, time});
  input.forward(b, x, qkv);
  b.plan += planCacheAppend(b.target, part(qkv, sums, 1), part(qkv, sums, 2), past.starts, past.keys, past.values);
  b.plan += planAttention(b.target, part(qkv, sums, 0), past.keys, past.values, byHeads(mixed, sums), sums, scale,
                          {.causal = false, .ranges = past.ranges, .dropout = weightSite.in(b)});
  output.forward(b, mixed, y, {.dropout = residualSite.in(b), .residual = residual});
  b.release(qkv);
  b.release(mixed);
  b.release(sums);
}

void Attention::backward(Build &b, const TensorRef &dy, const TensorRef &x, const Saved &s, const TensorRef &dx,
                         bool add) const {
  const TensorRef dout = takeDropped(b, residualSite, dy);
  output.weightGradient(b, s.mixed, dout);
  const TensorRef dmixed = b.take("d attention", s.mixed.extents), dqkv = b.take("d qkv", s.qkv.extents);
  output.inputGradient(b, dout, dmixed);
  releaseDropped(b, residualSite, dout);
  const AttentionSaved all = {
      part(s.qkv, s.sums, 0), part(s.qkv, s.sums, 1), part(s.qkv, s.sums, 2), byHeads(s.mixed, s.sums), s.sums,
      byHeads(dmixed, s.sums)};
  const TensorRef dq = part(dqkv, s.sums, 0), dk = part(dqkv, s.sums, 1), dv = part(dqkv, s.sums, 2);
  b.plan += counted(isPlain ? planPlainAttentionBackward(b.target, {all.q, all.k, all.v, s.sums, all.dout}, dq, dk, dv,
                                                         scale, maskIn(b))
                            : planAttentionBackward(b.target, all, dq, dk, dv, scale, maskIn(b)),
                    s.sums.extents[0], s.sums.extents[2], width);
  b.release(dmixed);
  release(b, s);
  input.weightGradient(b, x, dqkv);
  input.inputGradient(b, dqkv, dx, add);
  b.release(dqkv);
}

} // namespace kiln
