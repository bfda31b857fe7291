// GPT-2 in double precision: the decoder on a tape (test/models/reference/decoder.h) with Hugging Face's names, and
// AdamW. It shares no arithmetic with models/. And the sizes, weights and batches of tests that compare the trainer's
// network with it.

#pragma once

#include "models/data/batches.h"
#include "models/data/host_batch.h"
#include "models/gpt2/network.h"
#include "models/train/trainer.h"

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace reference {

using Tensor = std::vector<double>;
/// Parameters or gradients by their Hugging Face name, dense row-major; a linear layer computes y = x · W + b, W (in,
/// out).
using Tensors = std::map<std::string, Tensor>;

/// Mean cross-entropy in nats of `targets` after `tokens`, both (batch, time) with time ≤ context; targets below 0 are
/// missing.
double loss(const kiln::Gpt2Config &config, const Tensors &parameters, const std::vector<int> &tokens,
            const std::vector<int> &targets, int64_t batch, int64_t time);
/// The loss, and its gradient by every parameter in `gradients`.
double gradient(const kiln::Gpt2Config &config, const Tensors &parameters, const std::vector<int> &tokens,
                const std::vector<int> &targets, int64_t batch, int64_t time, Tensors &gradients);
/// Logits (batch, time, vocab).
Tensor logits(const kiln::Gpt2Config &config, const Tensors &parameters, const std::vector<int> &tokens, int64_t batch,
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

namespace kiln::test {

inline Batch randomBatch(const Gpt2Config &c, int64_t batch, uint32_t seed) {
  std::mt19937 engine(seed);
  Batch b;
  for (int64_t i = 0; i < batch * c.context; ++i) {
    b.tokens.push_back(static_cast<int32_t>(engine() % c.vocab));
    b.targets.push_back(static_cast<int32_t>(engine() % c.vocab));
  }
  return b;
}

inline HostBatch makeInputs(const Batch &b) { return languageBatch(b.tokens, b.targets); }

/// The settings of a run of `accumulate` micro-batches of `batch` sequences, whose products are as exact everywhere.
inline TrainSettings chooseSettings(int64_t batch, int64_t accumulate = 1) {
  return {.batch = batch, .accumulate = accumulate, .precision = Precision::ieee};
}

/// Random weights, none of them zero or one, so that swapped gradients show; numbers of `type`, held in f32.
inline HostBuffers randomBuffers(const ParameterList &list, uint32_t seed, Type type = f32) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 0.1f);
  std::vector<double> drawn(list.count());
  for (const Parameter &p : list.all())
    for (int64_t i = 0; i < p.count(); ++i)
      drawn[p.offset + i] = normal(engine) + (p.init.kind == Init::Kind::ones ? 1.0f : 0.0f);
  std::vector<char> rounded(list.count() * bytesOf(type)), values(list.count() * bytesOf(f32));
  fromDoubles(drawn, type, rounded.data());
  fromDoubles(toDoubles(rounded.data(), type, list.count()), f32, values.data());
  return {values, std::vector<float>(list.count()), std::vector<float>(list.count())};
}

/// The part of a flat buffer that belongs to `p`.
inline reference::Tensor part(const float *flat, const Parameter &p) {
  return {flat + p.offset, flat + p.offset + p.count()};
}

inline reference::Tensors referenceParameters(const ParameterList &list, const HostBuffers &buffers) {
  reference::Tensors parameters;
  for (const Parameter &p : list.all())
    parameters[p.name] = part(reinterpret_cast<const float *>(buffers.values.data()), p);
  return parameters;
}

inline double norm(const reference::Tensor &x) {
  double squares = 0;
  for (double value : x)
    squares += value * value;
  return std::sqrt(squares);
}

} // namespace kiln::test
