// Tensors of random numbers, and repeated runs of plans.

#include "tools/kiln-bench/bench.h"

#include "tools/kiln-bench/machine.h"

#include <algorithm>
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

/// Random bytes that are numbers in (−1, 1) as bf16 and as f32, and finite as f16.
static std::vector<uint16_t> someNumbers(int64_t bytes) {
  std::vector<uint16_t> numbers(static_cast<size_t>(cdiv(bytes, 2)));
  std::minstd_rand random(1);
  for (uint16_t &number : numbers) {
    const auto bits = static_cast<uint32_t>(random());
    number = static_cast<uint16_t>((bits & 0x8000) | (0x3a00 + (bits >> 16) % 0x580)); // at least 2⁻¹¹
  }
  return numbers;
}

bench::Space bench::spaceOf(const Setting &setting, std::vector<std::unique_ptr<Tensor>> &held, bool zeroed) {
  static constexpr int64_t large = 1 << 20;
  const auto allocate = [&held, &setting, numbers = someNumbers(zeroed ? 0 : large)](int64_t bytes) {
    held.push_back(std::make_unique<Tensor>(setting.device, i8, Shape{std::max<int64_t>(1, bytes)}));
    char *const data = static_cast<char *>(held.back()->data());
    for (int64_t at = 0; !numbers.empty() && bytes >= large && at < bytes; at += large)
      setting.device->upload(data + at, numbers.data(), std::min(large, bytes - at));
    return data;
  };
  return {allocate, [&](void *to, const void *from, int64_t bytes) { setting.device->upload(to, from, bytes); }};
}

void bench::addByKernel(Setting &setting, Row row, const std::map<std::string, double> &milliseconds, const char *whole,
                        double all) {
  std::vector<std::pair<double, std::string>> times;
  for (const auto &[kernel, time] : milliseconds)
    times.emplace_back(time, kernel);
  std::sort(times.rbegin(), times.rend());
  row.metric = "ms";
  row.peer = whole;
  row.peerValue = all;
  for (const std::string shape = row.shape; const auto &[time, kernel] : times) {
    row.shape = shape + ": " + kernel;
    row.value = time;
    setting.report.add(row);
  }
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
