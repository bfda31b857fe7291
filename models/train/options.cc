// Settings that options replace, and the device that they name.

#include "models/train/options.h"
#include "models/train/setting_table.h"
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
  if (s.rounding == Rounding::stochastic && o.has("rounding") && (s.master || s.type == f32))
    throw Error(fmt::format("expected 'rounding' to be stochastic with 'master' 0 and a narrow dtype alone, but got "
                            "'master' {} and {}: f32 weights round to nearest",
                            static_cast<int>(s.master), dtypeOf(s.type)));
  if ((o.has("loss-scale") || o.has("scale-window")) && s.type != f16)
    throw Error(fmt::format("expected 'loss-scale' and 'scale-window' with dtype fp16 alone, but got {}: its gradients "
                            "do not vanish",
                            dtypeOf(s.type)));
}

void verify(const RunOptions &run, const SettingOptions &settings) {
  if (run.memory && (settings.has("recompute") || settings.has("loss-chunks")))
    throw Error(
        "expected one of --memory, which chooses what is made again, and --recompute or --loss-chunks, which say "
        "it, but got both");
}

TrainSettings replaced(const SettingOptions &o, const TrainSettings &base) {
  TrainSettings s = base;
  for (const Setting &setting : settingTable())
    if (const auto text = o.given.find(setting.flag); text != o.given.end())
      setting.take(s, text->second);
  return s;
}

TrainSettings applied(const SettingOptions &o, const TrainSettings &base) {
  const TrainSettings s = replaced(o, base);
  verify(s);
  expectMeaning(o, s);
  return s;
}

} // namespace kiln
