// Attention's launches. Heads are views into the packed projections; nothing is transposed in memory.

#include "models/nn/attention.h"
#include "kernels/cache_append.h"
#include "kernels/plain_attention.h"

namespace kiln {

/// The projection of the encoder's output, if there is one.
static std::optional<Linear> memoryProjection(ParameterList &list, const AttentionNames &names, int64_t width,
                                              const AttentionOptions &options, const Inits &inits, bool isCross) {
  if (!isCross)
    return {};
  return Linear(list, names.memory, width, 2 * width, inits.attentionInput(width, 2 * width), options.linear);
}

Attention::Attention(ParameterList &list, const AttentionNames &names, int64_t width, const AttentionOptions &options,
                     const Inits &inits, const DropoutOptions &dropout, int64_t context, bool isCross)
    : heads(options.heads), width(width), scale(static_cast<float>(options.scale)),
      isPlain(options.form == AttentionForm::plain),
      input(list, names.input, width, isCross ? width : 3 * width,
            inits.attentionInput(width, isCross ? width : 3 * width), options.linear),
      memory(memoryProjection(list, names, width, options, inits, isCross)),
      output(list, names.output, width, width, inits.attentionOutput(width), options.linear),
      residualSite(list, dropout.of(dropout.residual), context),
      weightSite(list, dropout.of(dropout.attention), context) {}

std::vector<SavedActivation *> Attention::all(Saved &s) const {
  if (memory)
    return {&s.input, &s.kv, &s.mixed, &s.sums};
  return {&s.input, &s.mixed, &s.sums};
}

void Attention::release(Build &b, Saved &s) const {
  for (SavedActivation *kept : all(s))
    kept->release(b);
}

void Attention::drop(Build &b, Saved &s) const {
  for (SavedActivation *kept : all(s))
    kept->drop(b);
}

AttentionMask Attention::maskIn(const Build &b, int64_t time) const {
  if (!memory)
    return {.causal = !b.ranges, .ranges = b.ranges, .queryRanges = b.queryRanges, .dropout = weightSite.in(b)};
  return {.causal = false,
          .ranges = repeatedRanges(b.memory->ranges, time),
          .queryRanges = b.memory->queryRanges,
          .dropout = weightSite.in(b)};
}

TensorRef Attention::byHeads(const TensorRef &x, int64_t batch, int which) const {
  return x.reshape({batch, x.extents[0] / batch, x.extents[1] / width, heads, width / heads})
      .select(2, which)
      .permute({0, 2, 1, 3});
}

Attention::Heads Attention::splitHeads(const TensorRef &in, const TensorRef &kv, int64_t batch) const {
  if (memory)
    return {byHeads(in, batch), byHeads(kv, batch, 0), byHeads(kv, batch, 1)};
  return {byHeads(in, batch, 0), byHeads(in, batch, 1), byHeads(in, batch, 2)};
}

/// Number of (T, S, D) products that an attention kernel computes for each head.
static int countProducts(const Kernel &kernel) {
  return &kernel == &attentionKernel                  ? 2 // q · kᵀ, p · v
         : &kernel == &attentionBackwardKernel        ? 5 // q · kᵀ again, dout · vᵀ; dq, dk, dv
         : &kernel == &attentionBackwardKeysKernel    ? 4 // those five, without dq
         : &kernel == &attentionBackwardQueriesKernel ? 3 // those five, without dk and dv
         : &kernel == &headProductKernel              ? 1
                                                      : 0;
}

Plan Attention::counted(Plan plan, const TensorRef &q, const TensorRef &k) const {
  const double product = 2 * static_cast<double>(q.count()) * static_cast<double>(k.extents[2]);
  for (Launch &launch : plan.launches) {
    const bool isHalf = !memory && launch.kernel != &headProductKernel; // causal flash attention
    launch.flops = countProducts(*launch.kernel) * product / (isHalf ? 2 : 1);
  }
  return plan;
}

void Attention::begin(Build &b, const Reader &x, int64_t batch, int64_t time, Saved &s) const {
  const int64_t keys = memory ? b.memory->states.extents[0] / batch : time;
  const Shape weights = {batch, heads, time, keys}, ofRows = {batch, heads, time};
  s.x = x;
  const auto project = [this, &s](Build &b) { input.forward(b, s.x(b), *s.input); };
  const auto look = [this, &s](Build &b) { memory->forward(b, b.memory->states, *s.kv); };
  s.input.take(b, Site::qkv, called(memory ? "q" : "qkv"), {batch * time, memory ? width : 3 * width}, project);
  if (memory)
    s.kv.take(b, Site::qkv, called("kv"), {batch * keys, 2 * width}, look);
  s.mixed.take(b, Site::attention, called("attention"), {batch * time, width}, [this, &s](Build &b) { mix(b, s); });
  s.sums.take(b, Site::attention, called(isPlain ? "weights" : "log-sum-exp"), f32, isPlain ? weights : ofRows, {});
  project(b);
  if (memory)
    look(b);
  mix(b, s);
}

void Attention::mix(Build &b, Saved &s) const {
  const TensorRef in = s.input.get(b), kv = memory ? s.kv.get(b) : in, sums = s.sums.place(b);
  const auto [q, k, v] = splitHeads(in, kv, sums.extents[0]);
  const TensorRef o = byHeads(*s.mixed, sums.extents[0]);
  const AttentionMask mask = maskIn(b, q.extents[2]);
  b.plan += counted(isPlain ? planPlainAttention(b.target, q, k, v, o, sums, scale, mask)
                            : planAttention(b.target, q, k, v, o, sums, scale, mask),
                    q, k);
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

KvCache Attention::known(const CrossKvCache &cache, int64_t time) const {
  const int64_t batch = cache.ranges.extents[0];
  return {byHeads(cache.kv, batch, 0), byHeads(cache.kv, batch, 1), {}, repeatedRanges(cache.ranges, time)};
}

void Attention::extend(Build &b, const TensorRef &x, const TensorRef &residual, const KvCache &cache,
                       const TensorRef &y) const {
  const int64_t batch = cache.ranges.extents[0], rows = x.extents[0];
  const TensorRef in = b.take(called(memory ? "q" : "qkv"), {rows, memory ? width : 3 * width}),
                  mixed = b.take(called("attention"), {rows, width}),
                  sums = b.takeStatistics(called("log-sum-exp"), {batch, heads, rows / batch});
  input.forward(b, x, in);
  if (!memory)
    b.plan +=
        planCacheAppend(b.target, byHeads(in, batch, 1), byHeads(in, batch, 2), cache.starts, cache.keys, cache.values);
  b.plan += planAttention(b.target, byHeads(in, batch), cache.keys, cache.values, byHeads(mixed, batch), sums, scale,
                          {.causal = false, .ranges = cache.ranges, .dropout = weightSite.in(b)});
  output.forward(b, mixed, y, {.dropout = residualSite.in(b), .residual = residual});
  for (const TensorRef *taken : {&in, &mixed, &sums})
    b.release(*taken);
}

void Attention::backward(Build &b, const TensorRef &dy, Saved &s, const TensorRef &dx, bool add) const {
  const TensorRef dout = takeDropped(b, residualSite, dy), mixed = s.mixed.get(b);
  output.weightGradient(b, mixed, dout);
  const TensorRef in = s.input.get(b), kv = memory ? s.kv.get(b) : in, sums = *s.sums;
  const TensorRef dmixed = b.take("d " + called("attention"), mixed.extents),
                  din = b.take("d " + called(memory ? "q" : "qkv"), in.extents),
                  dkv = memory ? b.take("d " + called("kv"), kv.extents) : din;
  output.inputGradient(b, dout, dmixed);
  releaseDropped(b, residualSite, dout);
  const int64_t batch = sums.extents[0];
  const auto [q, k, v] = splitHeads(in, kv, batch);
  const auto [dq, dk, dv] = splitHeads(din, dkv, batch);
  const TensorRef heads = byHeads(mixed, batch), dheads = byHeads(dmixed, batch);
  const AttentionMask mask = maskIn(b, q.extents[2]);
  b.plan += counted(isPlain ? planPlainAttentionBackward(b.target, {q, k, v, sums, dheads}, dq, dk, dv, scale, mask)
                            : planAttentionBackward(b.target, {q, k, v, heads, sums, dheads}, dq, dk, dv, scale, mask),
                    q, k);
  b.release(dmixed);
  release(b, s);
  input.weightGradient(b, s.x(b), din);
  input.inputGradient(b, din, dx, add);
  b.release(din);
  if (!memory)
    return;
  memory->weightGradient(b, b.memory->states, dkv);
  const bool isFirst = !b.memory->gradient;
  if (isFirst)
    b.memory->gradient = b.take("d memory", b.memory->states.extents);
  memory->inputGradient(b, dkv, *b.memory->gradient, /*add=*/!isFirst);
  b.release(dkv);
}

} // namespace kiln
