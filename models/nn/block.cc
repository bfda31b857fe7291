// The order of a block's layers and the life of its activations.

#include "models/nn/block.h"

#include <utility>

namespace kiln {

Block::Block(ParameterList &list, const BlockNames &names, int64_t width, const BlockOptions &o, const Inits &inits,
             const DropoutOptions &dropout, int64_t context)
    : width(width), isPre(o.place == NormPlace::pre), attentionFirst(o.order == BlockOrder::attention_first),
      norm1(list, names.norm1, width, o.norm),
      attention(list, names.attention, width, o.attention, inits, dropout, context),
      norm2(list, names.norm2, width, o.norm), mlp(list, names.mlp, width, o.mlp, inits, dropout, context) {}

//===-- Forward -------------------------------------------------------------------------------------------------===//

Block::Layer Block::attentionLayer(Saved &s, int64_t batch, int64_t time) const {
  return {.norm = norm1,
          .half = attentionFirst ? s.first : s.second,
          .begin = [=, this, &s](Build &b, const Reader &x) { attention.begin(b, x, batch, time, s.attention); },
          .finish = [this, &s](Build &b, const TensorRef &residual,
                               const TensorRef &y) { attention.finish(b, residual, s.attention, y); },
          .drop = [this, &s](Build &b) { attention.drop(b, s.attention); },
          .backward = [this, &s](Build &b, const TensorRef &dy, const TensorRef &dx,
                                 bool add) { attention.backward(b, dy, s.attention, dx, add); }};
}

Block::Layer Block::mlpLayer(Saved &s, int64_t rows) const {
  return {.norm = norm2,
          .half = attentionFirst ? s.second : s.first,
          .begin = [=, this, &s](Build &b, const Reader &x) { mlp.begin(b, x, rows, s.mlp); },
          .finish = [this, &s](Build &b, const TensorRef &residual,
                               const TensorRef &y) { mlp.finish(b, residual, s.mlp, y); },
          .drop = [this, &s](Build &b) { mlp.drop(b, s.mlp); },
          .backward = [this, &s](Build &b, const TensorRef &dy, const TensorRef &dx,
                                 bool add) { mlp.backward(b, dy, s.mlp, dx, add); }};
}

std::array<Block::Layer, 2> Block::layers(Saved &s, int64_t batch, int64_t time) const {
  const Layer attends = attentionLayer(s, batch, time), feeds = mlpLayer(s, batch * time);
  return attentionFirst ? std::array<Layer, 2>{attends, feeds} : std::array<Layer, 2>{feeds, attends};
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
  const std::array<Layer, 2> both = layers(s, batch, time);
  const std::array<std::string, 2> words = {attentionFirst ? "attention" : "mlp", attentionFirst ? "mlp" : "attention"};
  const std::array<std::string, 2> results = {attentionFirst ? "attended" : "fed", attentionFirst ? "fed" : "attended"};
  s.x = x;
  s.first.x = [&s](Build &) { return s.x; };
  s.second.x = [&s](Build &b) { return s.middle.get(b); };
  {
    const Scope scope(b, words[0]);
    open(b, both[0], x.extents[0]);
    const Layer first = both[0];
    const auto join = [=, this, &s](Build &b) { close(b, first, *s.middle); };
    s.middle.take(b, isPre ? Site::middle : Site::norms, results[0], x.extents, join);
    join(b);
    drop(b, first);
  }
  const Scope scope(b, words[1]);
  open(b, both[1], x.extents[0]);
  const TensorRef y = b.take(results[1], x.extents);
  close(b, both[1], y);
  drop(b, both[1]);
  s.middle.drop(b);
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

template <class Attend> void Block::inferWith(Build &b, const TensorRef &x, Attend attend) const {
  const TensorRef normed = isPre ? b.take("norm", x.extents) : x;
  const LayerNorm::Saved statistics = norm1.take(b, x.extents[0]);
  for (const bool attends : {attentionFirst, !attentionFirst}) {
    const Scope scope(b, attends ? "attention" : "mlp");
    if (attends)
      halfInfer(b, x, normed, norm1, statistics, attend);
    else
      halfInfer(b, x, normed, norm2, statistics, [&](const TensorRef &in) { mlp.infer(b, in, x, x); });
  }
  norm2.release(b, statistics);
  if (isPre)
    b.release(normed);
}

void Block::infer(Build &b, const TensorRef &x, int64_t batch, int64_t time) const {
  inferWith(b, x, [&](const TensorRef &in) { attention.infer(b, in, x, batch, time, x); });
}

void Block::extend(Build &b, const TensorRef &x, const Past &past) const {
  inferWith(b, x, [&](const TensorRef &in) { attention.extend(b, in, x, past, x); });
}

//===-- Backward ------------------------------------------------------------------------------------------------===//

TensorRef Block::halfBackward(Build &b, const Layer &layer, const TensorRef &dy, const TensorRef &dnormed) const {
  HalfSaved &s = layer.half;
  TensorRef dx = dy;
  if (isPre) {
    layer.backward(b, dy, dnormed, /*add=*/false);
    s.normed.release(b);
    if (b.gathered.reads(dy))
      dx = b.take("d block output", dy.extents);
    layer.norm.backward(b, dnormed, s.x(b), s.norm, dx, /*residual=*/dy);
    if (dx.data != dy.data)
      b.release(dy);
  } else {
    layer.norm.backward(b, dy, s.sum.get(b), s.norm, dx);
    s.sum.release(b);
    const bool gathers = b.gathered.pause(); // dx changes, which gradients of weights are made of
    layer.backward(b, dx, dx, /*add=*/true);
    b.gathered.resume(gathers);
  }
  layer.norm.release(b, s.norm);
  return dx;
}

TensorRef Block::backward(Build &b, const TensorRef &dy, Saved &s) const {
  // Of a block's halves all is made again at most once: what the second one needs of the first stays for that.
  const std::array<Layer, 2> both = layers(s, 0, 0);
  const TensorRef dnormed = isPre ? b.take("d norm", dy.extents) : dy;
  TensorRef dx = dy;
  {
    const Scope scope(b, attentionFirst ? "mlp backward" : "attention backward");
    dx = halfBackward(b, both[1], dx, dnormed);
    s.middle.release(b);
  }
  const Scope scope(b, attentionFirst ? "attention backward" : "mlp backward");
  dx = halfBackward(b, both[0], dx, dnormed);
  if (isPre)
    b.release(dnormed);
  b.release(s.x);
  return dx;
}

} // namespace kiln
