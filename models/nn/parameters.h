// A model's parameters: where each lies in the flat buffers of values, gradients and optimiser state. Tensors that
// decay come first, so that one launch over the buffers knows which is which; each begins at a multiple of 64 elements.

#pragma once

#include "runtime/Tensor.h"

namespace kiln {

/// How a parameter begins.
struct Init {
  enum class Kind { zeros, ones, normal } kind = Kind::zeros;
  double deviation = 0;
};

/// One parameter: its name in files, its shape and its place.
struct Parameter {
  std::string name;
  Shape shape;
  Init init;
  bool decays = false;
  int64_t offset = 0; // elements, set by place()

  int64_t count() const;
};

/// Names of the two parameters that most layers have, whole.
struct LayerNames {
  std::string weight, bias;
};

/// The list of parameters, in the order of their making, and the layout over the flat buffers.
class ParameterList {
public:
  /// Adds a parameter, which weight decay applies to when it is a matrix; returns its number.
  int add(std::string name, Shape shape, Init init);
  /// Gives every parameter its offset; nothing may be added afterwards.
  void place();

  const std::vector<Parameter> &all() const { return list; }
  const Parameter &operator[](int index) const { return list[index]; }
  /// Elements of a flat buffer, and of its first part, which decays. Gaps between tensors are counted; they stay zero.
  int64_t count() const { return total; }
  int64_t decayedCount() const { return decayed; }

private:
  std::vector<Parameter> list;
  int64_t total = 0, decayed = 0;
};

/// The flat buffers on a device. Made without memory, they have null addresses and serve to plan with.
struct ParameterBuffers {
  TensorRef values, gradients;
  TensorRef value(const Parameter &p) const;
  TensorRef gradient(const Parameter &p) const;
};

} // namespace kiln
