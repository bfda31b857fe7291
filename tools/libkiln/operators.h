// The built-in operators as kiln.h names them: a name, operands, options, and the plan of kernels/ that they become.

#pragma once

#include "kernels/activation.h"
#include "runtime/Tensor.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kiln::c {

/// Products of f32: as plans choose for the device, or as dialect/dsl/Tile.h names them.
enum class ProductPrecision { automatic, ieee, tf32, tf32x3, bf16x3 };

/// The options of all operators. An operator reads those among its fields; the others keep these values.
struct OperatorOptions {
  bool accumulate = false; // out += …
  bool isCausal = false;
  double scale = 0;  // 0: the operator's own default
  float eps = 1e-5f; // LayerNorm's
  Activation activation = Activation::none;
  int64_t ignoreIndex = -100;
  float labelSmoothing = 0;
  int64_t columns = 0; // 0: all
  int64_t length = 0;  // 0: all
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, weightDecay = 0.01;
  double adamEps = 1e-8;
  int64_t step = 1;
  ProductPrecision precision = ProductPrecision::automatic;
};

/// An operator's launches, and further tensors that they read, in addition to its operands.
struct OperatorPlan {
  Plan plan;
  std::vector<Tensor> kept = {};
};

struct Operator {
  struct Operand {
    std::string name;
    bool isWritten, isOptional;
  };
  using Tensors = std::vector<std::optional<TensorRef>>;

  std::string name;
  std::vector<Operand> operands;
  std::vector<Field> fields;
  std::function<OperatorPlan(const std::shared_ptr<Device> &, const Tensors &, const OperatorOptions &)> plan;
};

/// All operators; throws Error for a name that is none's.
const std::vector<Operator> &operators();
const Operator &operatorNamed(const std::string &name);

} // namespace kiln::c
