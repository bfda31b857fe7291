// GPT-2 in plain double precision, written a second time: forward, backward and AdamW, one loop nest a formula. The
// tests compare the trainer with it. It shares no code with models/ on purpose, and is itself checked by central
// differences (reference_test.cc). Weights have Hugging Face's names and shapes; a linear layer computes y = x · W + b,
// W (in, out).

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reference {

using Tensor = std::vector<double>;
/// Parameters or gradients by their Hugging Face name, dense row-major.
using Tensors = std::map<std::string, Tensor>;

struct Shape {
  int64_t layers = 2, heads = 2, width = 8, context = 6, vocab = 11;
  double epsilon = 1e-5;      // of LayerNorm
  bool scalesScores = true;   // by 1/√(width / heads)
  bool scalesByLayer = false; // by 1/(layer + 1)
};

/// Zeros of every parameter's size.
Tensors zeros(const Shape &shape);

/// Mean cross-entropy in nats of `targets` after `tokens`, both (batch, time) with time ≤ context; targets below 0 are
/// missing.
double loss(const Shape &shape, const Tensors &parameters, const std::vector<int> &tokens,
            const std::vector<int> &targets, int64_t batch, int64_t time);

/// The loss, and its gradient by every parameter in `gradients`.
double gradient(const Shape &shape, const Tensors &parameters, const std::vector<int> &tokens,
                const std::vector<int> &targets, int64_t batch, int64_t time, Tensors &gradients);

/// Logits (batch, time, vocab).
Tensor logits(const Shape &shape, const Tensors &parameters, const std::vector<int> &tokens, int64_t batch,
              int64_t time);

/// Decoupled weight decay after Loshchilov & Hutter: matrices decay, vectors do not.
struct AdamW {
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8, decay = 0.1, clip = 1.0;
  int64_t steps = 0;
  Tensors first = {}, second = {};
  /// One update in place; returns the global gradient norm before clipping.
  double update(Tensors &parameters, const Tensors &gradients, double rate);
};

} // namespace reference
