// The order of a block's layers and the life of its activations.

#include "models/nn/block.h"

#include <utility>

namespace kiln {

Block::Block(ParameterList &list, const BlockNames &names, int64_t width, const BlockOptions &o, const Inits &inits,
             const DropoutOptions &dropout, int64_t context)
    : width(width), isPre(o.place == NormPlace::pre), attentionFirst(o.order == BlockOrder::attention_first),
      norm1(list, names.norm1, width, o.norm),
      attention(list, names.attention, width, o.attention, inits, dropout, context),
      norm2(list, names.norm2, width, o.norm), mlp(list, names.mlp, width, o.mlp, inits, dropout, context) {
  if (o.cross) {
    norm3.emplace(list, names.norm3, width, o.norm);
    cross.emplace(list, names.cross, width, o.attention, inits, dropout, context);
  }
}

//===-- Forward -------------------------------------------------------------------------------------------------===//

template <class Take, class Layer>
TensorRef Block::half(Build &b, const TensorRef &x, const char *name, const LayerNorm &norm, HalfSaved &s, Take take,
                      Layer layer) const {
  const Shape shape = x.extents;
  s.x = x;
  s.norm = norm.take(b, shape[0]);
  if (isPre) {
    s.normed = b.take("normed", shape);
    norm.forward(b, x, s.norm, s.normed);
    take();
    const TensorRef y = b.take(name, shape);
    layer(s.normed, x, y);
    return y;
  }
  take();
  s.sum = b.take("sum", shape);
  layer(x, x, s.sum);
  const TensorRef y = b.take(name, shape);
  norm.forward(b, s.sum, s.norm, y);
  return y;
}

TensorRef Block::attend(Build &b, const TensorRef &x, int64_t batch, int64_t time, HalfSaved &s, Saved &saved) const {
  const Scope scope(b, "attention");
  return half(
      b, x, "attended", norm1, s, [&] { saved.attention = attention.take(b, batch, time); },
      [&](const TensorRef &in, const TensorRef &residual, const TensorRef &y) {
        attention.forward(b, in, residual, saved.attention, y);
      });
}

TensorRef Block::feed(Build &b, const TensorRef &x, HalfSaved &s, Saved &saved) const {
  const Scope scope(b, "mlp");
  return half(
      b, x, "fed", norm2, s, [&] { saved.mlp = mlp.take(b, x.extents[0]); },
      [&](const TensorRef &in, const TensorRef &residual, const TensorRef &y) {
        mlp.forward(b, in, residual, saved.mlp, y);
      });
}

TensorRef Block::look(Build &b, const TensorRef &x, int64_t batch, int64_t time, Saved &saved) const {
  if (!cross)
    return x;
  const Scope scope(b, "cross-attention");
  return half(
      b, x, "looked", *norm3, saved.third, [&] { saved.cross = cross->take(b, batch, time); },
      [&](const TensorRef &in, const TensorRef &residual, const TensorRef &y) {
        cross->forward(b, in, residual, saved.cross, y);
      });
}

TensorRef Block::forward(Build &b, const TensorRef &x, int64_t batch, int64_t time, Saved &s) const {
  if (attentionFirst)
    return feed(b, look(b, attend(b, x, batch, time, s.first, s), batch, time, s), s.second, s);
  return look(b, attend(b, feed(b, x, s.first, s), batch, time, s.second, s), batch, time, s);
}

//===-- Evaluation ----------------------------------------------------------------------------------------------===//

template <class Layer>
void Block::halfInfer(Build &b, const TensorRef &x, const TensorRef &normed, const LayerNorm &norm,
                      const LayerNorm::Saved &statistics, Layer layer) const {
  if (isPre) {
    norm.forward(b, x, statistics, normed);
    layer(normed);
  } else {
    layer(x);
    norm.forward(b, x, statistics, x);
  }
}

template <class Attend, class Look>
void Block::inferWith(Build &b, const TensorRef &x, Attend attend, Look look) const {
  const TensorRef normed = isPre ? b.take("norm", x.extents) : x;
  const LayerNorm::Saved statistics = norm1.take(b, x.extents[0]);
  for (const bool attends : {attentionFirst, !attentionFirst}) {
    const Scope scope(b, attends ? "attention" : "mlp");
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
  const auto alone = [&](const auto &layer) {
    return [&](const TensorRef &in) {
      const auto saved = layer.take(b, batch, time);
      layer.forward(b, in, x, saved, x);
      layer.release(b, saved);
    };
  };
  inferWith(b, x, alone(attention), [&](const TensorRef &in) { alone (*cross)(in); });
}

void Block::extend(Build &b, const TensorRef &x, const Past &past, const CrossPast *crossPast) const {
  inferWith(
      b, x, [&](const TensorRef &in) { attention.extend(b, in, x, past, x); },
      [&](const TensorRef &in) { cross->extend(b, in, x, *crossPast, x); });
}

//===-- Backward ------------------------------------------------------------------------------------------------===//

template <class Layer>
void Block::halfBackward(Build &b, const TensorRef &dx, const TensorRef &dnormed, const LayerNorm &norm,
                         const HalfSaved &s, Layer layer) const {
  if (isPre) {
    layer(dx, s.normed, dnormed, /*add=*/false);
    norm.backward(b, dnormed, s.x, s.norm, dx, /*add=*/true);
  } else {
    norm.backward(b, dx, s.sum, s.norm, dx, /*add=*/false);
    layer(dx, s.x, dx, /*add=*/true);
  }
  norm.release(b, s.norm);
  b.release(isPre ? s.normed : s.sum);
}

void Block::backward(Build &b, const TensorRef &dx, const Saved &saved) const {
  const TensorRef dnormed = isPre ? b.take("d norm", dx.extents) : dx;
  for (const bool attends : {!attentionFirst, attentionFirst}) {
    const Scope scope(b, attends ? "attention backward" : "mlp backward");
    const bool isFirst = attends == attentionFirst;
    if (attends && cross) {
      halfBackward(b, dx, dnormed, *norm3, saved.third,
                   [&](const TensorRef &dy, const TensorRef &x, const TensorRef &to, bool add) {
                     cross->backward(b, dy, x, saved.cross, to, add);
                   });
      b.release(saved.third.x);
    }
    const HalfSaved &s = isFirst ? saved.first : saved.second;
    if (attends)
      halfBackward(b, dx, dnormed, norm1, s,
                   [&](const TensorRef &dy, const TensorRef &x, const TensorRef &to, bool add) {
                     attention.backward(b, dy, x, saved.attention, to, add);
                   });
    else
      halfBackward(b, dx, dnormed, norm2, s,
                   [&](const TensorRef &dy, const TensorRef &x, const TensorRef &to, bool add) {
                     mlp.backward(b, dy, x, saved.mlp, to, add);
                   });
    if (isFirst && isPre)
      b.release(dnormed);
    b.release(s.x);
  }
}

} // namespace kiln
