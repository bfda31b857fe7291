// Sums losses over batches, and launches gradient norms.

#include "models/train/evaluation.h"
#include "kernels/gradient_norms.h"

#include <algorithm>

namespace kiln {

//===-- Validation ----------------------------------------------------------------------------------------------===//

std::vector<int64_t> evenlySpaced(int64_t first, int64_t count, int64_t taken, int64_t all) {
  std::vector<int64_t> numbers;
  for (int64_t i = first; i < std::min(first + count, taken); ++i)
    numbers.push_back(static_cast<int64_t>(static_cast<__int128>(i) * all / taken));
  return numbers;
}

std::optional<Validation> validate(Trainer &trainer, const TrainData &data, int64_t batch, int64_t most,
                                   const std::function<bool()> &stop, Collective &ranks) {
  const int64_t all = data.validationSequences(), taken = most > 0 ? std::min(most, all) : all;
  Validation sums;
  int64_t targets = 0;
  bool stopped = false;
  for (int64_t first = 0; first < taken && !stopped; first += batch) {
    const std::vector<int64_t> sequences = evenlySpaced(first, batch, taken, all);
    stopped = stop();
    targets += data.validationTargets(sequences);
    if (stopped || first / batch % ranks.size() != ranks.rank())
      continue;
    const Trainer::Sums some = trainer.sums(data.validation(sequences, batch));
    sums.loss += some.losses;
    sums.accuracy += some.hits;
  }
  if (ranks.any(stopped))
    return {};
  sums = {ranks.sum(sums.loss), ranks.sum(sums.accuracy)};
  const auto count = static_cast<double>(targets);
  return Validation{sums.loss / count, sums.accuracy / count};
}

//===-- Gradient norms ------------------------------------------------------------------------------------------===//

/// `h.0` of `h.0.attn.c_attn.weight`, `wte` of `wte.weight`.
static std::string groupName(std::string name) {
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
    const auto known = std::find(groups.begin(), groups.end(), groupName(p.name));
    ranges.push_back({p.offset, p.offset + p.count(), known - groups.begin()});
    if (known == groups.end())
      groups.push_back(groupName(p.name));
  }
  const GroupChunks chunks = cutIntoChunks(ranges, std::ssize(groups));
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
