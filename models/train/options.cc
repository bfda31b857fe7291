// Settings that options replace, and the device that they name.

#include "models/train/options.h"
#include "dialect/dsl/Kernel.h"
#include "runtime/Compile.h"

#include <fmt/format.h>

namespace kiln {

std::shared_ptr<Device> openDevice(const MachineOptions &options) {
  if (options.threads < 0)
    throw Error(fmt::format("expected 'threads' to be at least 0, but got {}", options.threads));
  std::shared_ptr<Device> device = Device::open(options.device);
  if (options.threads > 0) {
    device->setThreads(options.threads);
    setCompileThreads(options.threads);
  }
  return device;
}

TrainSettings applied(const SettingOptions &o, const TrainSettings &base) {
  TrainSettings s = base;
  s.batch = o.batch.value_or(s.batch);
  s.accumulate = o.accumulate.value_or(s.accumulate);
  s.steps = o.steps.value_or(s.steps);
  s.warmup = o.warmup.value_or(s.warmup);
  s.rate = o.rate.value_or(s.rate);
  s.finalRate = o.finalRate.value_or(s.finalRate);
  s.decay = o.decay.value_or(s.decay);
  s.beta1 = o.beta1.value_or(s.beta1);
  s.beta2 = o.beta2.value_or(s.beta2);
  s.clip = o.clip.value_or(s.clip);
  s.evaluateEvery = o.evaluateEvery.value_or(s.evaluateEvery);
  s.seed = o.seed.value_or(s.seed);
  if (o.precision)
    s.precision = precisionNamed(*o.precision);
  verify(s);
  return s;
}

} // namespace kiln
