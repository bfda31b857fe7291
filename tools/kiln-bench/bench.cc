// Tensors of random numbers and plans that run repeatedly.

#include "tools/kiln-bench/bench.h"

#include "tools/kiln-bench/machine.h"

#include <random>

using namespace kiln;

Tensor bench::randomTensor(const Setting &setting, const Shape &extents, uint64_t seed) {
  Tensor tensor(setting.device, setting.type, extents);
  const float scale = isFloat(setting.type) ? 1 : 127;
  std::minstd_rand generator(static_cast<uint32_t>(seed * 2654435761u + 1));
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  for (float &value : values)
    value = scale * (static_cast<float>(generator()) * 0x1p-30f - 1.0f);
  tensor.uploadFloats(values);
  return tensor;
}

Tensor bench::zeroTensor(const Setting &setting, const Shape &extents, Type type) {
  return Tensor(setting.device, type, extents);
}

bench::Space bench::spaceOf(const Setting &setting, std::vector<std::unique_ptr<Tensor>> &held) {
  return {[&](int64_t bytes) {
            held.push_back(std::make_unique<Tensor>(setting.device, i8, Shape{std::max<int64_t>(1, bytes)}));
            return held.back()->data();
          },
          [&](void *to, const void *from, int64_t bytes) { setting.device->upload(to, from, bytes); }};
}

bench::Contender bench::copyOf(const Setting &setting, const Tensor &from, Tensor &to) {
  if (!setting.isHost())
    return [&] { setting.device->copy(to.data(), from.data(), from.bytes()); };
  return [&] {
    copyFloats(static_cast<float *>(to.data()), static_cast<const float *>(from.data()), from.bytes() / 4,
               setting.threads);
  };
}

bench::Runner::Runner(const Setting &setting, Plan plan)
    : device(setting.device), plan(std::move(plan)),
      workspace(
          std::make_shared<Tensor>(setting.device, Type::i8, Shape{std::max<int64_t>(1, this->plan.workspaceBytes)})) {}
