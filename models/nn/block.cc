// The order of a block's layers and the life of its activations.

#include "models/nn/block.h"

namespace kiln {

Block::Block(ParameterList &list, const BlockNames &names, const BlockSettings &s, double deviation,
             double residualDeviation)
    : width(s.width), norm1(list, names.norm1, width, s.epsilon),
      attention(list, names.attention, s.heads, width, s.scale, deviation, residualDeviation),
      norm2(list, names.norm2, width, s.epsilon), mlp(list, names.mlp, width, deviation, residualDeviation) {}

TensorRef Block::forward(Build &b, const TensorRef &x, int64_t batch, int64_t time, Saved &s) const {
  const int64_t rows = batch * time;
  s.x = x;
  {
    const Scope scope(b, "attention");
    s.norm1 = norm1.take(b, rows);
    s.normed1 = b.take("norm 1", {rows, width});
    norm1.forward(b, x, s.norm1, s.normed1);
    s.attention = attention.take(b, batch, time);
    s.middle = b.take("middle", {rows, width});
    attention.forward(b, s.normed1, x, s.attention, s.middle);
  }
  const Scope scope(b, "mlp");
  s.norm2 = norm2.take(b, rows);
  s.normed2 = b.take("norm 2", {rows, width});
  norm2.forward(b, s.middle, s.norm2, s.normed2);
  s.mlp = mlp.take(b, rows);
  const TensorRef y = b.take("block output", {rows, width});
  mlp.forward(b, s.normed2, s.middle, s.mlp, y);
  return y;
}

void Block::infer(Build &b, const TensorRef &x, int64_t batch, int64_t time) const {
  const TensorRef normed = b.take("norm", x.extents);
  const LayerNorm::Saved statistics = norm1.take(b, batch * time);
  {
    const Scope scope(b, "attention");
    norm1.forward(b, x, statistics, normed);
    const Attention::Saved saved = attention.take(b, batch, time);
    attention.forward(b, normed, x, saved, x);
    attention.release(b, saved);
  }
  const Scope scope(b, "mlp");
  norm2.forward(b, x, statistics, normed);
  mlp.infer(b, normed, x, x);
  norm2.release(b, statistics);
  b.release(normed);
}

void Block::backward(Build &b, const TensorRef &dx, const Saved &s) const {
  const TensorRef dnormed = b.take("d norm", dx.extents);
  {
    const Scope scope(b, "mlp backward");
    mlp.backward(b, dx, s.normed2, s.mlp, dnormed);
    norm2.backward(b, dnormed, s.middle, s.norm2, dx, /*add=*/true);
    norm2.release(b, s.norm2);
    b.release(s.normed2);
    b.release(s.middle);
  }
  const Scope scope(b, "attention backward");
  attention.backward(b, dx, s.normed1, s.attention, dnormed);
  norm1.backward(b, dnormed, s.x, s.norm1, dx, /*add=*/true);
  norm1.release(b, s.norm1);
  b.release(s.normed1);
  b.release(dnormed);
  b.release(s.x);
}

} // namespace kiln
