// The formulas of GPT-2 in order: LayerNorm, linear, causal attention, GELU (tanh form), cross-entropy, each with its
// derivative written out. Nothing is fused or optimised.

#include "test/models/gpt2/reference.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace reference {
namespace {

const double geluScale = std::sqrt(2.0 / M_PI);

/// y (rows, out) = x (rows, in) · w (in, out) + b (out); `b` may be empty.
Tensor linear(const Tensor &x, const Tensor &w, const Tensor &b, int64_t rows, int64_t in, int64_t out) {
  Tensor y(rows * out);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < out; ++o) {
      double sum = b.empty() ? 0 : b[o];
      for (int64_t i = 0; i < in; ++i)
        sum += x[r * in + i] * w[i * out + o];
      y[r * out + o] = sum;
    }
  return y;
}

/// dx from dy; dw and db are added to.
Tensor linearBackward(const Tensor &dy, const Tensor &x, const Tensor &w, Tensor &dw, Tensor &db, int64_t rows,
                      int64_t in, int64_t out) {
  Tensor dx(rows * in);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < out; ++o) {
      const double g = dy[r * out + o];
      db[o] += g;
      for (int64_t i = 0; i < in; ++i) {
        dx[r * in + i] += g * w[i * out + o];
        dw[i * out + o] += g * x[r * in + i];
      }
    }
  return dx;
}

Tensor layerNorm(const Shape &shape, const Tensor &x, const Tensor &gain, const Tensor &bias, int64_t rows) {
  const int64_t width = shape.width;
  Tensor y(rows * width);
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i)
      mean += x[r * width + i] / width;
    for (int64_t i = 0; i < width; ++i)
      variance += (x[r * width + i] - mean) * (x[r * width + i] - mean) / width;
    for (int64_t i = 0; i < width; ++i)
      y[r * width + i] = (x[r * width + i] - mean) / std::sqrt(variance + shape.epsilon) * gain[i] + bias[i];
  }
  return y;
}

/// dx from dy; dgain and dbias are added to.
Tensor layerNormBackward(const Shape &shape, const Tensor &dy, const Tensor &x, const Tensor &gain, Tensor &dgain,
                         Tensor &dbias, int64_t rows) {
  const int64_t width = shape.width;
  Tensor dx(rows * width);
  for (int64_t r = 0; r < rows; ++r) {
    const double *xr = &x[r * width], *dyr = &dy[r * width];
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i)
      mean += xr[i] / width;
    for (int64_t i = 0; i < width; ++i)
      variance += (xr[i] - mean) * (xr[i] - mean) / width;
    const double scale = 1 / std::sqrt(variance + shape.epsilon);
    double sum = 0, product = 0; // means of dxhat and of dxhat * xhat
    for (int64_t i = 0; i < width; ++i) {
      const double xhat = (xr[i] - mean) * scale;
      dgain[i] += dyr[i] * xhat;
      dbias[i] += dyr[i];
      sum += dyr[i] * gain[i] / width;
      product += dyr[i] * gain[i] * xhat / width;
    }
    for (int64_t i = 0; i < width; ++i)
      dx[r * width + i] = (dyr[i] * gain[i] - sum - (xr[i] - mean) * scale * product) * scale;
  }
  return dx;
}

Tensor gelu(const Tensor &x) {
  Tensor y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    y[i] = 0.5 * x[i] * (1 + std::tanh(geluScale * (x[i] + 0.044715 * x[i] * x[i] * x[i])));
  return y;
}

Tensor geluBackward(const Tensor &dy, const Tensor &x) {
  Tensor dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double t = std::tanh(geluScale * (x[i] + 0.044715 * x[i] * x[i] * x[i]));
    dx[i] = dy[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * geluScale * (1 + 3 * 0.044715 * x[i] * x[i]));
  }
  return dx;
}

/// The offset of the rows of one head in qkv (batch, time, 3, heads, head width).
struct Head {
  int64_t time, width, size;
  int64_t b, h;
  double scale; // of the scores
  int64_t at(int part, int64_t t, int64_t i) const { return ((b * time + t) * 3 + part) * width + h * size + i; }
  int64_t out(int64_t t, int64_t i) const { return (b * time + t) * width + h * size + i; }
};

/// Causal softmax(q · kᵀ · scale) of row t, over positions 0 … t.
Tensor probabilities(const Tensor &qkv, const Head &head, int64_t t) {
  Tensor p(t + 1);
  double largest = -INFINITY, sum = 0;
  for (int64_t s = 0; s <= t; ++s) {
    for (int64_t i = 0; i < head.size; ++i)
      p[s] += qkv[head.at(0, t, i)] * qkv[head.at(1, s, i)] * head.scale;
    largest = std::max(largest, p[s]);
  }
  for (double &value : p)
    sum += value = std::exp(value - largest);
  for (double &value : p)
    value /= sum;
  return p;
}

template <class Body> void eachHead(const Shape &shape, int64_t layer, int64_t batch, int64_t time, Body body) {
  const int64_t size = shape.width / shape.heads;
  const double scale =
      (shape.scalesScores ? 1 / std::sqrt(double(size)) : 1) / double(shape.scalesByLayer ? layer + 1 : 1);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      body(Head{time, shape.width, size, b, h, scale});
}

Tensor attention(const Shape &shape, int64_t layer, const Tensor &qkv, int64_t batch, int64_t time) {
  Tensor y(batch * time * shape.width);
  eachHead(shape, layer, batch, time, [&](const Head &head) {
    for (int64_t t = 0; t < time; ++t) {
      const Tensor p = probabilities(qkv, head, t);
      for (int64_t s = 0; s <= t; ++s)
        for (int64_t i = 0; i < head.size; ++i)
          y[head.out(t, i)] += p[s] * qkv[head.at(2, s, i)];
    }
  });
  return y;
}

Tensor attentionBackward(const Shape &shape, int64_t layer, const Tensor &dy, const Tensor &qkv, int64_t batch,
                         int64_t time) {
  Tensor d(qkv.size());
  eachHead(shape, layer, batch, time, [&](const Head &head) {
    for (int64_t t = 0; t < time; ++t) {
      const Tensor p = probabilities(qkv, head, t);
      Tensor dp(t + 1);
      double mean = 0;
      for (int64_t s = 0; s <= t; ++s) {
        for (int64_t i = 0; i < head.size; ++i) {
          dp[s] += dy[head.out(t, i)] * qkv[head.at(2, s, i)];
          d[head.at(2, s, i)] += p[s] * dy[head.out(t, i)];
        }
        mean += p[s] * dp[s];
      }
      for (int64_t s = 0; s <= t; ++s)
        for (int64_t i = 0; i < head.size; ++i) {
          const double ds = p[s] * (dp[s] - mean) * head.scale;
          d[head.at(0, t, i)] += ds * qkv[head.at(1, s, i)];
          d[head.at(1, s, i)] += ds * qkv[head.at(0, t, i)];
        }
    }
  });
  return d;
}

Tensor add(Tensor a, const Tensor &b) {
  for (size_t i = 0; i < a.size(); ++i)
    a[i] += b[i];
  return a;
}

/// The saved activations of one block for the backward pass.
struct Block {
  Tensor input, norm1, qkv, mixed, middle, norm2, wide, active;
};

struct Forward {
  std::vector<Block> blocks;
  Tensor last, normed, logits;
};

std::string name(int64_t layer, const char *rest) { return "h." + std::to_string(layer) + "." + rest; }

Tensor embed(const Shape &shape, const Tensors &p, const std::vector<int> &tokens, int64_t batch, int64_t time) {
  Tensor x(batch * time * shape.width);
  for (int64_t r = 0; r < batch * time; ++r)
    for (int64_t i = 0; i < shape.width; ++i)
      x[r * shape.width + i] =
          p.at("wte.weight")[tokens[r] * shape.width + i] + p.at("wpe.weight")[r % time * shape.width + i];
  return x;
}

/// wte (vocab, width) as the head's matrix (width, vocab).
Tensor transposed(const Tensor &w, int64_t rows, int64_t columns) {
  Tensor t(w.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      t[c * rows + r] = w[r * columns + c];
  return t;
}

Forward forward(const Shape &shape, const Tensors &p, const std::vector<int> &tokens, int64_t batch, int64_t time) {
  const int64_t rows = batch * time, width = shape.width;
  Forward f;
  Tensor x = embed(shape, p, tokens, batch, time);
  for (int64_t l = 0; l < shape.layers; ++l) {
    auto of = [&](const char *rest) -> const Tensor & { return p.at(name(l, rest)); };
    Block b;
    b.input = x;
    b.norm1 = layerNorm(shape, x, of("ln_1.weight"), of("ln_1.bias"), rows);
    b.qkv = linear(b.norm1, of("attn.c_attn.weight"), of("attn.c_attn.bias"), rows, width, 3 * width);
    b.mixed = attention(shape, l, b.qkv, batch, time);
    b.middle = add(x, linear(b.mixed, of("attn.c_proj.weight"), of("attn.c_proj.bias"), rows, width, width));
    b.norm2 = layerNorm(shape, b.middle, of("ln_2.weight"), of("ln_2.bias"), rows);
    b.wide = linear(b.norm2, of("mlp.c_fc.weight"), of("mlp.c_fc.bias"), rows, width, 4 * width);
    b.active = gelu(b.wide);
    x = add(b.middle, linear(b.active, of("mlp.c_proj.weight"), of("mlp.c_proj.bias"), rows, 4 * width, width));
    f.blocks.push_back(std::move(b));
  }
  f.last = x;
  f.normed = layerNorm(shape, x, p.at("ln_f.weight"), p.at("ln_f.bias"), rows);
  f.logits = linear(f.normed, transposed(p.at("wte.weight"), shape.vocab, width), {}, rows, width, shape.vocab);
  return f;
}

/// Mean loss over the targets that are present, which are at least 0; `logits` is replaced by its gradient.
double crossEntropy(Tensor &logits, const std::vector<int> &targets, int64_t vocab) {
  const int64_t present = std::count_if(targets.begin(), targets.end(), [](int target) { return target >= 0; });
  double total = 0;
  for (size_t r = 0; r < targets.size(); ++r) {
    double *row = &logits[r * vocab];
    if (targets[r] < 0) {
      std::fill_n(row, vocab, 0.0);
      continue;
    }
    double largest = -INFINITY, sum = 0;
    for (int64_t v = 0; v < vocab; ++v)
      largest = std::max(largest, row[v]);
    for (int64_t v = 0; v < vocab; ++v)
      sum += std::exp(row[v] - largest);
    total += std::log(sum) + largest - row[targets[r]];
    for (int64_t v = 0; v < vocab; ++v)
      row[v] = (std::exp(row[v] - largest) / sum - (v == targets[r])) / static_cast<double>(present);
  }
  return total / static_cast<double>(present);
}

/// Gradient by one block's input from that by its output.
Tensor blockBackward(const Shape &shape, const Tensors &p, const Block &b, int64_t l, const Tensor &dout, Tensors &g,
                     int64_t batch, int64_t time) {
  const int64_t rows = batch * time, width = shape.width;
  auto of = [&](const char *rest) -> const Tensor & { return p.at(name(l, rest)); };
  auto grad = [&](const char *rest) -> Tensor & { return g.at(name(l, rest)); };
  const Tensor dactive = linearBackward(dout, b.active, of("mlp.c_proj.weight"), grad("mlp.c_proj.weight"),
                                        grad("mlp.c_proj.bias"), rows, 4 * width, width);
  const Tensor dwide = geluBackward(dactive, b.wide);
  const Tensor dnorm2 = linearBackward(dwide, b.norm2, of("mlp.c_fc.weight"), grad("mlp.c_fc.weight"),
                                       grad("mlp.c_fc.bias"), rows, width, 4 * width);
  const Tensor dmiddle = add(dout, layerNormBackward(shape, dnorm2, b.middle, of("ln_2.weight"), grad("ln_2.weight"),
                                                     grad("ln_2.bias"), rows));
  const Tensor dmixed = linearBackward(dmiddle, b.mixed, of("attn.c_proj.weight"), grad("attn.c_proj.weight"),
                                       grad("attn.c_proj.bias"), rows, width, width);
  const Tensor dqkv = attentionBackward(shape, l, dmixed, b.qkv, batch, time);
  const Tensor dnorm1 = linearBackward(dqkv, b.norm1, of("attn.c_attn.weight"), grad("attn.c_attn.weight"),
                                       grad("attn.c_attn.bias"), rows, width, 3 * width);
  return add(dmiddle, layerNormBackward(shape, dnorm1, b.input, of("ln_1.weight"), grad("ln_1.weight"),
                                        grad("ln_1.bias"), rows));
}

} // namespace

Tensors zeros(const Shape &shape) {
  const int64_t width = shape.width;
  Tensors t;
  t["wte.weight"].resize(shape.vocab * width);
  t["wpe.weight"].resize(shape.context * width);
  t["ln_f.weight"].resize(width);
  t["ln_f.bias"].resize(width);
  for (int64_t l = 0; l < shape.layers; ++l) {
    for (const char *norm : {"ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"})
      t[name(l, norm)].resize(width);
    const std::vector<std::tuple<const char *, const char *, int64_t, int64_t>> linears = {
        {"attn.c_attn.weight", "attn.c_attn.bias", width, 3 * width},
        {"attn.c_proj.weight", "attn.c_proj.bias", width, width},
        {"mlp.c_fc.weight", "mlp.c_fc.bias", width, 4 * width},
        {"mlp.c_proj.weight", "mlp.c_proj.bias", 4 * width, width}};
    for (const auto &[weight, bias, in, out] : linears) {
      t[name(l, weight)].resize(in * out);
      t[name(l, bias)].resize(out);
    }
  }
  return t;
}

Tensor logits(const Shape &shape, const Tensors &p, const std::vector<int> &tokens, int64_t batch, int64_t time) {
  return forward(shape, p, tokens, batch, time).logits;
}

double loss(const Shape &shape, const Tensors &p, const std::vector<int> &tokens, const std::vector<int> &targets,
            int64_t batch, int64_t time) {
  Tensor l = logits(shape, p, tokens, batch, time);
  return crossEntropy(l, targets, shape.vocab);
}

double gradient(const Shape &shape, const Tensors &p, const std::vector<int> &tokens, const std::vector<int> &targets,
                int64_t batch, int64_t time, Tensors &g) {
  const int64_t rows = batch * time, width = shape.width;
  Forward f = forward(shape, p, tokens, batch, time);
  const double mean = crossEntropy(f.logits, targets, shape.vocab);
  g = zeros(shape);
  // The head is wte transposed: its gradient joins that of the embedding.
  Tensor dhead(width * shape.vocab), unused(shape.vocab);
  const Tensor dnormed = linearBackward(f.logits, f.normed, transposed(p.at("wte.weight"), shape.vocab, width), dhead,
                                        unused, rows, width, shape.vocab);
  g["wte.weight"] = transposed(dhead, width, shape.vocab);
  Tensor dx = layerNormBackward(shape, dnormed, f.last, p.at("ln_f.weight"), g["ln_f.weight"], g["ln_f.bias"], rows);
  for (int64_t l = shape.layers; l-- > 0;)
    dx = blockBackward(shape, p, f.blocks[l], l, dx, g, batch, time);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i) {
      g["wte.weight"][tokens[r] * width + i] += dx[r * width + i];
      g["wpe.weight"][r % time * width + i] += dx[r * width + i];
    }
  return mean;
}

double AdamW::update(Tensors &parameters, const Tensors &gradients, double rate) {
  double squares = 0;
  for (const auto &[key, g] : gradients)
    for (double value : g)
      squares += value * value;
  const double norm = std::sqrt(squares), scale = norm > clip ? clip / norm : 1;
  ++steps;
  for (auto &[key, p] : parameters) {
    const bool vector = key.find("bias") != std::string::npos || key.find("ln_") != std::string::npos;
    Tensor &m = first[key], &v = second[key];
    m.resize(p.size());
    v.resize(p.size());
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = gradients.at(key)[i] * scale;
      m[i] = beta1 * m[i] + (1 - beta1) * g;
      v[i] = beta2 * v[i] + (1 - beta2) * g * g;
      const double mhat = m[i] / (1 - std::pow(beta1, steps)), vhat = v[i] / (1 - std::pow(beta2, steps));
      p[i] -= rate * (mhat / (std::sqrt(vhat) + epsilon) + (vector ? 0 : decay * p[i]));
    }
  }
  return norm;
}

} // namespace reference
