// Attention's launches. Heads are views into the packed projection; nothing is transposed in memory.

#include "models/nn/attention.h"
#include "kernels/attention.h"
#include "models/nn/residual.h"

namespace kiln {

/// Products of queries by keys, or of as many numbers, that an attention kernel computes for each head.
static int productsOf(const Kernel &kernel) {
  return &kernel == &attentionKernel                  ? 2 // q · kᵀ, p · v
         : &kernel == &attentionBackwardKernel        ? 5 // q · kᵀ again, dout · vᵀ; dq, dk, dv
         : &kernel == &attentionBackwardKeysKernel    ? 4 // the same but dq
         : &kernel == &attentionBackwardQueriesKernel ? 3 // … but dk and dv
                                                      : 0;
}

/// Attention's launches with the operations of its products, of which a causal one computes about half.
static Plan counted(Plan plan, int64_t sequences, int64_t time, int64_t width) {
  for (Launch &launch : plan.launches)
    launch.flops =
        productsOf(*launch.kernel) * static_cast<double>(sequences * time) * static_cast<double>(time * width);
  return plan;
}

Attention::Attention(ParameterList &list, const AttentionNames &names, int64_t width, const AttentionOptions &options,
                     const Inits &inits, const DropoutOptions &dropout, int64_t context)
    : heads(options.heads), width(width), scale(static_cast<float>(options.scale)),
      input(list, names.input, width, 3 * width, inits.inner(width), options.linear),
      output(list, names.output, width, width, inits.residual(width), options.linear),
      residualSite(list, dropout.of(dropout.residual), context) {}

Attention::Saved Attention::take(Build &b, int64_t batch, int64_t time) const {
  TensorRef qkv = b.take("qkv", {batch * time, 3 * width});
  TensorRef mixed = b.take("attention", {batch * time, width});
  return {qkv, mixed, b.takeStatistics("log-sum-exp", {batch, heads, time})};
}

void Attention::release(Build &b, const Saved &saved) const {
  b.release(saved.qkv);
  b.release(saved.mixed);
  b.release(saved.lse);
}

TensorRef Attention::part(const TensorRef &qkv, const TensorRef &lse, int which) const {
  const int64_t batch = lse.extents[0], time = lse.extents[2];
  return qkv.reshape({batch, time, 3, heads, width / heads}).select(2, which).permute({0, 2, 1, 3});
}

TensorRef Attention::byHeads(const TensorRef &x, const TensorRef &lse) const {
  return x.reshape({lse.extents[0], lse.extents[2], heads, width / heads}).permute({0, 2, 1, 3});
}

void Attention::forward(Build &b, const TensorRef &x, const TensorRef &residual, const Saved &s,
                        const TensorRef &y) const {
  input.forward(b, x, s.qkv);
  b.plan += counted(planAttention(b.target, part(s.qkv, s.lse, 0), part(s.qkv, s.lse, 1), part(s.qkv, s.lse, 2),
                                  byHeads(s.mixed, s.lse), s.lse, scale),
                    s.lse.extents[0], s.lse.extents[2], width);
  output.forward(b, s.mixed, y, {.dropout = residualSite.in(b), .residual = residual});
}

void Attention::backward(Build &b, const TensorRef &dy, const TensorRef &x, const Saved &s, const TensorRef &dx,
                         bool add) const {
  const TensorRef dout = takeDropped(b, residualSite, dy);
  output.weightGradient(b, s.mixed, dout);
  const TensorRef dmixed = b.take("d attention", s.mixed.extents), dqkv = b.take("d qkv", s.qkv.extents);
  output.inputGradient(b, dout, dmixed);
  releaseDropped(b, residualSite, dout);
  const AttentionSaved all = {
      part(s.qkv, s.lse, 0), part(s.qkv, s.lse, 1), part(s.qkv, s.lse, 2), byHeads(s.mixed, s.lse), s.lse,
      byHeads(dmixed, s.lse)};
  b.plan += counted(
      planAttentionBackward(b.target, all, part(dqkv, s.lse, 0), part(dqkv, s.lse, 1), part(dqkv, s.lse, 2), scale),
      s.lse.extents[0], s.lse.extents[2], width);
  b.release(dmixed);
  release(b, s);
  input.weightGradient(b, x, dqkv);
  input.inputGradient(b, dqkv, dx, add);
  b.release(dqkv);
}

} // namespace kiln
