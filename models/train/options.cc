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

/// Throws for options that say nothing under the settings they led to.
static void expectMeaning(const SettingOptions &o, const TrainSettings &s) {
  if (s.rounding == Rounding::stochastic && o.rounding && (s.master || s.type == f32))
    throw Error(fmt::format("expected 'rounding' to be stochastic with 'master' 0 and a narrow dtype alone, but got "
                            "'master' {} and {}: f32 weights round to nearest",
                            static_cast<int>(s.master), dtypeOf(s.type)));
  if ((o.lossScale || o.scaleWindow) && s.type != f16)
    throw Error(fmt::format("expected 'loss-scale' and 'scale-window' with dtype fp16 alone, but got {}: its gradients "
                            "do not vanish",
                            dtypeOf(s.type)));
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
  if (o.dtype)
    s.type = dtypeNamed("dtype", *o.dtype);
  if (o.master && *o.master != 0 && *o.master != 1)
    throw Error(fmt::format("expected 'master' to be 0 or 1, but got {}", *o.master));
  s.master = o.master.value_or(s.master) != 0;
  if (o.rounding)
    s.rounding = roundingNamed(*o.rounding);
  s.lossScale = o.lossScale.value_or(s.lossScale);
  s.scaleWindow = o.scaleWindow.value_or(s.scaleWindow);
  if (o.saveDtype)
    s.saveType = dtypeNamed("save-dtype", *o.saveDtype);
  verify(s);
  expectMeaning(o, s);
  return s;
}

} // namespace kiln
