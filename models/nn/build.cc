// Labels of launches, deferred gradients, and loss chunks.

#include "models/nn/build.h"

namespace kiln {

static void prepend(Plan &plan, const std::string &name, size_t begin) {
  for (size_t i = begin; i < plan.launches.size(); ++i) {
    std::string &label = plan.launches[i].label;
    label = label.empty() ? name : name + " " + label;
  }
}

std::vector<std::pair<int64_t, int64_t>> lossChunksOf(const Target &target, int64_t rows, int64_t chunks) {
  const int64_t each = target.partStride(cdiv(rows, chunks));
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t begin = 0; begin < (target.elastic ? chunks * each : rows); begin += each)
    parts.emplace_back(std::min(begin, rows), std::clamp<int64_t>(rows - begin, 0, each));
  return parts;
}

Plan labelled(Plan plan, const std::string &name) {
  prepend(plan, name, 0);
  return plan;
}

LaunchScope::~LaunchScope() { prepend(build.plan, name, begin); }

void Build::weightGradient(const WeightGradient &gradient) {
  if (deferred.isOn())
    deferred.add(gradient);
  else
    plan += planWeightGradients(target, {gradient}, accumulate);
}

void Build::launchWeights() {
  std::vector<TensorRef> unread;
  plan += labelled(deferred.takeWeights(target, accumulate, unread), "weight gradients");
  for (const TensorRef &buffer : unread)
    arena.release(buffer);
}

void Build::launchDeferred() {
  launchWeights();
  std::vector<TensorRef> unread;
  plan += labelled(deferred.takeSums(unread), "norm gradients");
  for (const TensorRef &buffer : unread)
    arena.release(buffer);
}

} // namespace kiln
