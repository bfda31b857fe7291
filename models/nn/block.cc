// The order of a block's layers, and the lifetimes of its activations.

#include "models/nn/block.h"

#include <fmt/format.h>

namespace kiln {

Block::Block(ParameterList &list, const BlockNames &names, int64_t width, const BlockOptions &o, const Inits &inits,
             const DropoutOptions &dropout, int64_t context)
    : width(width), isPre(o.place == NormPlace::pre), attentionFirst(o.order == BlockOrder::attention_first),
      norm1(list, names.norm1, width, o.norm),
      attention(list, names.attention, width, o.attention, inits, dropout, context),
      norm2(list, names.norm2, width, o.norm), mlp(list, names.mlp, width, o.mlp, inits, dropout, context) {
  if (o.cross) {
    norm3.emplace(list, names.norm3, width, o.norm);
    cross.emplace(list, names.cross, width, o.attention, inits, dropout, context, /*isCross=*/true);
  }
}

//===-- Forward -------------------------------------------------------------------------------------------------===//

std::vector<Block::Layer> Block::layers(Saved &s, int64_t batch, int64_t time) const {
  std::vector<Layer> all;
  const auto add = [&](const char *name, const char *result, const LayerNorm &norm, const auto &layer, auto &saved) {
    all.push_back({.name = name,
                   .result = result,
                   .norm = norm,
                   .half = s.halves[all.size()],
                   .begin = [&, batch, time](Build &b, const Reader &x) { layer.begin(b, x, batch, time, saved); },
                   .finish = [&](Build &b, const TensorRef &residual,
                                 const TensorRef &y) { layer.finish(b, residual, saved, y); },
                   .drop = [&](Build &b) { layer.drop(b, saved); },
                   .backward = [&](Build &b, const TensorRef &dy, const TensorRef &dx,
                                   bool adds) { layer.backward(b, dy, saved, dx, adds); }});
  };
  if (!attentionFirst)
    add("mlp", "fed", norm2, mlp, s.mlp);
  add("attention", "attended", norm1, attention, s.attention);
  if (cross)
    add("cross-attention", "looked", *norm3, *cross, s.cross);
  if (attentionFirst)
    add("mlp", "fed", norm2, mlp, s.mlp);
  return all;
}

void Block::open(Build &b, const Layer &layer, int64_t rows) const {
  HalfSaved &s = layer.half;
  s.norm = layer.norm.take(b, rows);
  if (!isPre) {
    layer.begin(b, s.x);
    s.sum.take(b, Site::middle, "sum", {rows, width}, [=, &s](Build &b) { layer.finish(b, s.x(b), *s.sum); });
    return layer.finish(b, s.x(b), *s.sum);
  }
  const auto normalise = [=, &s](Build &b) { layer.norm.forward(b, s.x(b), s.norm, *s.normed); };
  s.normed.take(b, Site::norms, "normed", {rows, width}, normalise);
  normalise(b);
  layer.begin(b, [&s](Build &b) { return s.normed.get(b); });
}

void Block::close(Build &b, const Layer &layer, const TensorRef &y) const {
  if (isPre)
    layer.finish(b, layer.half.x(b), y);
  else
    layer.norm.forward(b, layer.half.sum.get(b), layer.half.norm, y);
}

void Block::drop(Build &b, const Layer &layer) const {
  layer.drop(b);
  (isPre ? layer.half.normed : layer.half.sum).drop(b);
}

TensorRef Block::forward(Build &b, const TensorRef &x, int64_t batch, int64_t time, Saved &s) const {
  const std::vector<Layer> all = layers(s, batch, time);
  s.x = x;
  TensorRef y;
  for (size_t i = 0; i < all.size(); ++i) {
    const Layer &layer = all[i];
    const LaunchScope scope(b, layer.name);
    layer.half.x = [&s, i](Build &b) { return i == 0 ? s.x : s.middles[i - 1].get(b); };
    open(b, layer, x.extents[0]);
    if (i + 1 < all.size()) {
      SavedActivation &middle = s.middles[i];
      const auto join = [=, this, &middle](Build &b) { close(b, layer, *middle); };
      middle.take(b, isPre ? Site::middle : Site::norms, layer.result, x.extents, join);
      join(b);
    } else {
      y = b.take(layer.result, x.extents);
      close(b, layer, y);
    }
    drop(b, layer);
    if (i > 0)
      s.middles[i - 1].drop(b);
  }
  return y;
}

//===-- Evaluation ----------------------------------------------------------------------------------------------===//

template <class Infer>
void Block::halfInfer(Build &b, const TensorRef &x, const TensorRef &normed, const LayerNorm &norm,
                      const LayerNorm::Saved &statistics, Infer infer) const {
  if (isPre) {
    norm.forward(b, x, statistics, normed);
    infer(normed);
  } else {
    infer(x);
    norm.forward(b, x, statistics, x);
  }
}

template <class Attend, class Look>
void Block::inferWith(Build &b, const TensorRef &x, Attend attend, Look look) const {
  const TensorRef normed = isPre ? b.take("norm", x.extents) : x;
  const LayerNorm::Saved statistics = norm1.take(b, x.extents[0]);
  for (const bool attends : {attentionFirst, !attentionFirst}) {
    const LaunchScope scope(b, attends ? "attention" : "mlp");
    if (attends)
      halfInfer(b, x, normed, norm1, statistics, attend);
    else
      halfInfer(b, x, normed, norm2, statistics, [&](const TensorRef &in) { mlp.infer(b, in, x, x); });
    if (attends && cross)
      halfInfer(b, x, normed, *norm3, statistics, look);
  }
  norm2.release(b, statistics);
  if (isPre)
    b.release(normed);
}

void Block::infer(Build &b, const TensorRef &x, int64_t batch, int64_t time) const {
  inferWith(
      b, x, [&](const TensorRef &in) { attention.infer(b, in, x, batch, time, x); },
      [&](const TensorRef &in) { cross->infer(b, in, x, batch, time, x); });
}

void Block::extend(Build &b, const TensorRef &x, const KvCache &cache, const CrossKvCache *crossCache) const {
  inferWith(
      b, x, [&](const TensorRef &in) { attention.extend(b, in, x, cache, x); },
      [&](const TensorRef &in) {
        const int64_t time = x.extents[0] / crossCache->ranges.extents[0];
        cross->extend(b, in, x, cross->known(*crossCache, time), x);
      });
}

//===-- Backward ------------------------------------------------------------------------------------------------===//

TensorRef Block::halfBackward(Build &b, const Layer &layer, const TensorRef &dy, const TensorRef &dnormed) const {
  HalfSaved &s = layer.half;
  TensorRef dx = dy;
  if (isPre) {
    layer.backward(b, dy, dnormed, /*add=*/false);
    s.normed.release(b);
    if (b.deferred.reads(dy))
      dx = b.take("d block output", dy.extents);
    layer.norm.backward(b, dnormed, s.x(b), s.norm, dx, /*residual=*/dy);
    if (dx.data != dy.data)
      b.release(dy);
  } else {
    layer.norm.backward(b, dy, s.sum.get(b), s.norm, dx);
    s.sum.release(b);
    const bool gathers = b.deferred.pause(); // dx changes, and deferred weight gradients would read it later
    layer.backward(b, dx, dx, /*add=*/true);
    b.deferred.resume(gathers);
  }
  layer.norm.release(b, s.norm);
  return dx;
}

TensorRef Block::backward(Build &b, const TensorRef &dy, Saved &s) const {
  // Each half of a block is recomputed at most once; the results that later halves need are kept.
  const std::vector<Layer> all = layers(s, 0, 0);
  const TensorRef dnormed = isPre ? b.take("d norm", dy.extents) : dy;
  TensorRef dx = dy;
  for (size_t i = all.size(); i-- > 0;) {
    const LaunchScope scope(b, fmt::format("{} backward", all[i].name));
    dx = halfBackward(b, all[i], dx, dnormed);
    if (i > 0)
      s.middles[i - 1].release(b);
  }
  if (isPre)
    b.release(dnormed);
  b.release(s.x);
  return dx;
}

} // namespace kiln
