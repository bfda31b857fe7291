// A model's parameters: where each lies in the flat buffers of values, gradients and optimiser state. Tensors that
// decay come first, so that one launch over the buffers knows which is which; each begins at a multiple of 64 elements.

#pragma once

#include "models/data/random.h"
#include "models/nn/role.h"
#include "runtime/Tensor.h"

namespace kiln {

/// How a parameter begins: zeros, ones, normal with a deviation, uniform from −bound to bound, a constant, or the
/// sinusoids of positions (Vaswani et al. 2017, §3.5), sines and cosines interleaved.
struct Init {
  enum class Kind { zeros, ones, normal, uniform, constant, sinusoids } kind = Kind::zeros;
  double size = 0; // the deviation, the bound, the constant
};

/// How a linear layer begins.
struct LinearInit {
  Init weight, bias = {};
};

/// How the linear layers of a model begin.
struct Inits {
  double deviation = 0.02;         // of normal weights …
  double residualDeviation = 0.02; // … and of those of layers whose results are added to the stream
  bool byWidth = false;            // instead weights and biases uniform within ±1/√in, as PyTorch has them
  bool lecun = false;              // or weights normal with deviation 1/√in (LeCun et al. 1998, (16))
  bool xavierAttention = false;    // queries, keys and values by Glorot and Bengio 2010 (16), attention's biases zero
  LinearInit inner(int64_t in) const { return of(in, deviation); }
  LinearInit residual(int64_t in) const { return of(in, residualDeviation); }
  /// Of attention's projections: to queries, keys and values together, and back.
  LinearInit attentionInput(int64_t in, int64_t out) const;
  LinearInit attentionOutput(int64_t in) const;

private:
  LinearInit of(int64_t in, double deviation) const;
};

/// One parameter: its name in files, its shape and its place.
struct Parameter {
  std::string name;
  Shape shape;
  Init init;
  Role role = Role::matrix;
  int64_t offset = 0; // elements, set by place()

  int64_t count() const;
};

/// The numbers that `parameter` begins with; those that are drawn are a function of the random numbers and `lane`.
std::vector<float> firstNumbers(const Parameter &parameter, const Random &random, uint32_t lane);

/// Names of the two parameters that most layers have, whole. That of one that a layer does not have is not read.
struct LayerNames {
  std::string weight, bias;
};

/// The list of parameters, in the order of their making, and the layout over the flat buffers.
class ParameterList {
public:
  /// Adds a parameter; returns its number.
  int add(std::string name, Shape shape, Init init, Role role);
  /// Gives every parameter its offset, those that decay first; nothing may be added afterwards.
  void place(DecayOn policy = DecayOn::matrices);
  /// Adds a site of dropout; returns its number.
  int addSite() { return siteCount++; }
  /// Sites of dropout that the model has.
  int sites() const { return siteCount; }

  const std::vector<Parameter> &all() const { return list; }
  const Parameter &operator[](int index) const { return list[index]; }
  /// Elements of a flat buffer, and of its first part, which decays. Gaps between tensors are counted; they stay zero.
  int64_t count() const { return total; }
  int64_t decayedCount() const { return decayed; }

private:
  std::vector<Parameter> list;
  int64_t total = 0, decayed = 0;
  int siteCount = 0;
};

/// The flat buffers on a device. Made without memory, they have null addresses and serve to plan with.
struct ParameterBuffers {
  TensorRef values, gradients;
  TensorRef value(const Parameter &p) const;
  TensorRef gradient(const Parameter &p) const;
};

} // namespace kiln
