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

TensorRef Block::forward(Build &b, const TensorRef &x, int64_t batch, int64_t time, Saved &s) const {
  if (attentionFirst)
    return feed(b, attend(b, x, batch, time, s.first, s), s.second, s);
  return attend(b, feed(b, x, s.first, s), batch, time, s.second, s);
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
  inferWith(b, x, [&](const TensorRef &in) {
    const Attention::Saved saved = attention.take(b, batch, time);
    attention.forward(b, in, x, saved, x);
    attention.release(b, saved);
  });
}

void Block::extend(Build &b, const TensorRef &x, const Past &past) const {
  inferWith(b, x, [&](const TensorRef &in) { attention.extend(b, in, x, past, x); });
}

//===-- Backward ------------------------------------------------------------------------------------------------===//

template <class Layer>
TensorRef Block::halfBackward(Build &b, const TensorRef &dy, const TensorRef &dnormed, const LayerNorm &norm,
                              const HalfSaved &s, Layer layer) const {
  TensorRef dx = dy;
  if (isPre) {
    layer(dy, s.normed, dnormed, /*add=*/false);
    if (b.gathered.reads(dy))
      dx = b.take("d block output", dy.extents);
    norm.backward(b, dnormed, s.x, s.norm, dx, /*residual=*/dy);
    if (dx.data != dy.data)
      b.release(dy);
  } else {
    norm.backward(b, dy, s.sum, s.norm, dx);
    const bool gathers = b.gathered.pause(); // dx changes, which gradients of weights are made of
    layer(dx, s.x, dx, /*add=*/true);
    b.gathered.resume(gathers);
  }
  norm.release(b, s.norm);
  b.release(isPre ? s.normed : s.sum);
  return dx;
}

TensorRef Block::backward(Build &b, const TensorRef &dy, const Saved &saved) const {
  TensorRef dx = dy;
  const TensorRef dnormed = isPre ? b.take("d norm", dx.extents) : dx;
  for (const bool attends : {!attentionFirst, attentionFirst}) {
    const Scope scope(b, attends ? "attention backward" : "mlp backward");
    const bool isFirst = attends == attentionFirst;
    const HalfSaved &s = isFirst ? saved.first : saved.second;
    if (attends)
      dx = halfBackward(b, dx, dnormed, norm1, s,
                        [&](const TensorRef &dy, const TensorRef &x, const TensorRef &to, bool add) {
                          attention.backward(b, dy, x, saved.attention, to, add);
                        });
    else
      dx = halfBackward(b, dx, dnormed, norm2, s,
                        [&](const TensorRef &dy, const TensorRef &x, const TensorRef &to, bool add) {
                          mlp.backward(b, dy, x, saved.mlp, to, add);
                        });
    if (isFirst && isPre)
      b.release(dnormed);
    b.release(s.x);
  }
  return dx;
}

} // namespace kiln
