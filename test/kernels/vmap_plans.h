// Every plan of kernels/ at small extents, with its tensors, for batches of examples.

#pragma once

#include "dialect/dsl/Plan.h"

#include <functional>
#include <string>
#include <vector>

namespace kiln::test {

/// A tensor of a plan.
struct Part {
  Shape extents;
  Type type = f32;
  /// Its elements in row-major order, equal for each example; by default they are drawn from ½ to 1.
  std::function<double(int64_t)> number = {};
  bool isShared = false; // all examples have it together
};

struct PlanOf {
  std::string name;
  std::vector<Part> parts;
  std::function<Plan(const Target &, const std::vector<TensorRef> &)> one;
};

/// Every kernel of kernels/'s plans is launched by some plan of these. All extents are multiples of `unit`, except
/// those that the plans fix, and a few of an element or two.
std::vector<PlanOf> everyPlan(int64_t unit);

} // namespace kiln::test
