// A model's parameters and their layout in the flat buffers of weights, gradients and optimizer state. Tensors with
// weight decay come first, so that one AdamW launch covers the buffers. Each tensor begins at a multiple of 64
// elements.

#pragma once

#include "models/data/random.h"
#include "runtime/Tensor.h"

#include <array>

namespace kiln {

/// The role of a parameter, which decides its weight decay. A `fixed` parameter is a constant table: it gets no
/// gradient and no update.
enum class Role { matrix, table, gain, bias, fixed };

/// The parameters with weight decay. `matrices`: matrices and embedding tables. `nonzero`: LayerNorm gains too, so all
/// that are not initialised to zero. `all`: every one.
enum class DecayOn { matrices, nonzero, all };
/// Names of the values, in the order of the enumeration.
inline constexpr std::array<const char *, 3> decayOnNames = {"matrices", "nonzero", "all"};
bool decays(Role role, DecayOn policy);

/// Initialisation of a parameter: zeros, ones, normal with a deviation, uniform from −bound to bound, a constant, or
/// sinusoidal positions (Vaswani et al. 2017, §3.5), sines and cosines interleaved.
struct Init {
  enum class Kind { zeros, ones, normal, uniform, constant, sinusoids } kind = Kind::zeros;
  double size = 0; // the deviation, the bound, the constant
};

/// Initialisation of a linear layer.
struct LinearInit {
  Init weight, bias = {};
};

/// Initialisation of the linear layers of a model.
struct Inits {
  double deviation = 0.02;         // of normal weights …
  double residualDeviation = 0.02; // … and of those of layers that feed the residual stream
  bool byWidth = false;            // instead weights and biases uniform within ±1/√in, as in PyTorch
  bool lecun = false;              // or weights normal with deviation 1/√in (LeCun et al. 1998, (16))
  bool xavierAttention = false;    // queries, keys and values by Glorot and Bengio 2010 (16), attention's biases zero
  LinearInit inner(int64_t in) const { return of(in, deviation); }
  LinearInit residual(int64_t in) const { return of(in, residualDeviation); }
  /// Attention's projections: the joint one to queries, keys and values, and the output projection.
  LinearInit attentionInput(int64_t in, int64_t out) const;
  LinearInit attentionOutput(int64_t in) const;

private:
  LinearInit of(int64_t in, double deviation) const;
};

/// A parameter: its name in files, its shape and its offset.
struct Parameter {
  std::string name;
  Shape shape;
  Init init;
  Role role = Role::matrix;
  int64_t offset = 0; // elements, set by place()

  int64_t count() const;
};

/// The initial values of `parameter`. Random ones are a function of the random numbers and `lane`.
std::vector<float> firstNumbers(const Parameter &parameter, const Random &random, uint32_t lane);

/// Full names of the two parameters that most layers have. The name of a missing parameter is ignored.
struct LayerNames {
  std::string weight, bias;
};

/// The parameters in the order of their creation, and their layout in the flat buffers.
class ParameterList {
public:
  /// Adds a parameter; returns its index.
  int add(std::string name, Shape shape, Init init, Role role);
  /// Sets the offset of every parameter, those with weight decay first. Nothing may be added afterwards.
  void place(DecayOn policy = DecayOn::matrices);
  /// Adds a dropout site; returns its index.
  int addSite() { return siteCount++; }
  /// Number of dropout sites.
  int sites() const { return siteCount; }

  const std::vector<Parameter> &all() const { return list; }
  const Parameter &operator[](int index) const { return list[index]; }
  /// Elements of a flat buffer, and of its first part, which has weight decay. Padding between tensors is counted; it
  /// stays zero.
  int64_t count() const { return total; }
  int64_t decayedCount() const { return decayed; }

private:
  std::vector<Parameter> list;
  int64_t total = 0, decayed = 0;
  int siteCount = 0;
};

/// A line for each parameter that is trained, with its elements, shape and name, and their sum.
std::string textOf(const ParameterList &list);

/// The flat buffers on a device. Without memory they have null addresses and serve for planning.
struct ParameterBuffers {
  TensorRef values, gradients;
  TensorRef value(const Parameter &p) const;
  TensorRef gradient(const Parameter &p) const;
};

} // namespace kiln
