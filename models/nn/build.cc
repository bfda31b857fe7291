// Labels of launches, loss chunks, deferred gradients, and saved activations.

#include "models/nn/build.h"

#include <algorithm>
#include <utility>

namespace kiln {

//===-- Deferred gradients --------------------------------------------------------------------------------------===//

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

//===-- The build -----------------------------------------------------------------------------------------------===//

static void prepend(Plan &plan, const std::string &name, size_t begin) {
  for (size_t i = begin; i < plan.launches.size(); ++i) {
    std::string &label = plan.launches[i].label;
    label = label.empty() ? name : name + " " + label;
  }
}

std::vector<std::pair<int64_t, int64_t>> cutLossRows(const Target &target, int64_t rows, int64_t chunks) {
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

//===-- Saved activations ---------------------------------------------------------------------------------------===//

const TensorRef &SavedActivation::take(Build &b, Site site, const std::string &called, Type type, Shape extents,
                                       Fill with) {
  name = called;
  fill = std::move(with);
  isMadeAgain = b.recompute.makes(site, b.block);
  isThere = true;
  return memory = b.arena.take(name, type, std::move(extents));
}

void SavedActivation::drop(Build &b) {
  if (isMadeAgain)
    release(b);
}

const TensorRef &SavedActivation::get(Build &b) {
  if (!isThere) {
    place(b);
    const LaunchScope scope(b, "again");
    fill(b);
  }
  return memory;
}

const TensorRef &SavedActivation::place(Build &b) {
  if (!isThere)
    memory = b.arena.take(name, memory.type, memory.extents);
  isThere = true;
  return memory;
}

const TensorRef &SavedActivation::operator*() const {
  if (!isThere)
    throw Error("expected '" + name + "' to be in memory, but it was dropped", Fault::internal);
  return memory;
}

void SavedActivation::release(Build &b) {
  b.release(**this);
  isThere = false;
}

} // namespace kiln
