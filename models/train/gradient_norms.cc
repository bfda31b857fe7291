// Groups parameters by name; the launches are prepared once.

#include "models/train/gradient_norms.h"
#include "kernels/gradient_norms.h"

#include <algorithm>

namespace kiln {

/// `h.0` of `h.0.attn.c_attn.weight`, `wte` of `wte.weight`.
static std::string groupOf(std::string name) {
  if (name.starts_with("transformer."))
    name.erase(0, name.find('.') + 1);
  const size_t first = std::min(name.find('.'), name.size()), next = std::min(name.find('.', first + 1), name.size());
  const bool isNumber = next > first + 1 && std::all_of(name.begin() + static_cast<int64_t>(std::min(first + 1, next)),
                                                        name.begin() + static_cast<int64_t>(next),
                                                        [](char c) { return c >= '0' && c <= '9'; });
  return name.substr(0, isNumber ? next : first);
}

static Tensor uploaded(const std::shared_ptr<Device> &device, const std::vector<int64_t> &numbers) {
  Tensor tensor(device, i64, {std::ssize(numbers)});
  tensor.upload(numbers.data(), tensor.bytes());
  return tensor;
}

GradientNorms::GradientNorms(Trainer &trainer) : device(trainer.machine()) {
  std::vector<GroupRange> ranges;
  for (const Parameter &p : trainer.trained().parameters().all()) {
    const auto known = std::find(groups.begin(), groups.end(), groupOf(p.name));
    ranges.push_back({p.offset, p.offset + p.count(), known - groups.begin()});
    if (known == groups.end())
      groups.push_back(groupOf(p.name));
  }
  const GroupChunks chunks = chunksOf(ranges, std::ssize(groups));
  begins = uploaded(device, chunks.begins);
  ends = uploaded(device, chunks.ends);
  firsts = uploaded(device, chunks.firsts);
  out = Tensor(device, f32, {std::ssize(groups)});
  const Plan plan =
      planGradientNorms(device->target(), trainer.gradientRef(), begins, ends, firsts, trainer.stepRecord(), out);
  workspace = Tensor(device, i8, {plan.workspaceBytes});
  ready = prepare(*device, plan, workspace);
}

std::vector<double> GradientNorms::norms() {
  ready.run();
  device->synchronize();
  const std::vector<float> all = out.downloadFloats();
  return {all.begin(), all.end()};
}

} // namespace kiln
