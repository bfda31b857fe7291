// Collects deferred gradients, and launches them together.

#include "models/nn/deferred_gradients.h"

#include <algorithm>
#include <utility>

namespace kiln {

void DeferredGradients::begin(const Target &target) {
  on = target.visit([](const CpuFacts &) { return false; }, [](const GpuFacts &) { return true; });
}

void DeferredGradients::add(const std::vector<Launch> &launches, const TensorRef &ofParts) {
  sums.insert(sums.end(), launches.begin(), launches.end());
  parts.push_back(ofParts);
}

bool DeferredGradients::reads(const TensorRef &buffer) const {
  return std::any_of(weights.begin(), weights.end(), [&](const WeightGradient &waiting) {
    return waiting.x.data == buffer.data || waiting.dy.data == buffer.data;
  });
}

Plan DeferredGradients::takeWeights(const Target &target, bool accumulate, std::vector<TensorRef> &released) {
  released = std::exchange(held, {});
  return planWeightGradients(target, std::exchange(weights, {}), accumulate);
}

Plan DeferredGradients::takeSums(std::vector<TensorRef> &released) {
  on = false;
  released = std::exchange(parts, {});
  return {.launches = grouped(std::exchange(sums, {}))};
}

} // namespace kiln
