// Applies options to settings, and opens the device.

#include "models/train/options.h"
#include "models/train/setting_table.h"
#include "runtime/Compile.h"
#include "runtime/cuda/CudaDevice.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace kiln {

/// A GPU for this rank.
static const std::string anyGpu = "cuda";

std::shared_ptr<Device> openDevice(const MachineOptions &options) {
  if (options.threads < 0)
    throw Error(fmt::format("expected '--threads' to be at least 0, but got {}", options.threads));
  std::shared_ptr<Device> device = Device::open(options.device == anyGpu ? "cuda:0" : options.device);
  if (options.threads > 0) {
    device->setThreads(options.threads);
    setCompileThreads(options.threads);
  }
  return device;
}

/// The device of one of several ranks on a machine.
static std::string deviceOf(const std::string &asked, const Collective &ranks) {
  if (asked != anyGpu)
    return asked;
  if (const int count = ranks.isAlone() ? 1 : cudaCount(); ranks.localSize() > count)
    throw Error(fmt::format("expected a GPU for each of the {} ranks on this machine, but the driver has {}",
                            ranks.localSize(), count),
                Fault::device);
  return fmt::format("cuda:{}", ranks.localRank());
}

std::shared_ptr<Device> openDevice(const MachineOptions &options, const Collective &ranks) {
  MachineOptions own = options;
  own.device = deviceOf(options.device, ranks);
  std::shared_ptr<Device> device = openDevice(own);
  if (options.threads > 0 || ranks.localSize() == 1 || std::getenv("KILN_THREADS"))
    return device;
  const auto cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const int each = std::clamp(cores / ranks.localSize(), 1, device->threads()); // a launcher may have limited its cores
  device->setThreads(each);
  setCompileThreads(each);
  return device;
}

/// Cuts the requested micro-batches into `parts` parts, in place of the present number.
static void cut(TrainSettings &settings, int64_t parts) {
  settings.batch = settings.batch * settings.parts / parts;
  settings.accumulate = settings.accumulate / settings.parts * parts;
  settings.parts = parts;
}

std::optional<std::string> divide(TrainSettings &settings, int64_t ranks, bool isCut) {
  if (settings.accumulate >= ranks)
    return {};
  const int64_t each = cdiv(ranks, settings.accumulate);
  if (!isCut || settings.order == DataOrder::llmc || settings.batch % each != 0)
    throw Error(fmt::format("expected '--accumulate' to be at least the number of ranks{}, but got "
                            "--accumulate {} and --batch {} for {} ranks",
                            isCut ? ", or '--batch' to be a multiple of the ranks for each micro-batch" : "",
                            settings.accumulate, settings.batch, ranks));
  cut(settings, settings.parts * each);
  return fmt::format("a step has {} micro-batches of {} sequences, for {} ranks", settings.accumulate, settings.batch,
                     ranks);
}

void expectEffect(const SettingOptions &o, const TrainSettings &s) {
  const auto expect = [&](bool hasEffect, const char *flag, const std::string &required, const std::string &got) {
    if (o.has(flag) && !hasEffect)
      throw Error(fmt::format("--{} requires {}, but got {}", flag, required, got));
  };
  const std::string dtype = fmt::format("--dtype {}", dtypeOf(s.type));
  const std::string batching = fmt::format("--batching {}", batchingNames.at(static_cast<size_t>(s.batching)));
  expect(s.rounding == WeightRounding::nearest || (!s.master && s.type != f32), "rounding",
         "--master 0 and --dtype bf16 or fp16", fmt::format("--master {} and {}", static_cast<int>(s.master), dtype));
  for (const char *flag : {"loss-scale", "scale-window"})
    expect(s.type == f16, flag, "--dtype fp16", dtype);
  expect(s.batching == Batching::stream, "order", "--batching stream", batching);
  for (const char *flag : {"pack", "positions"})
    expect(s.batching == Batching::packed, flag, "--batching packed", batching);
}

void expectNoBatchTokens(const SettingOptions &o) {
  if (o.has("batch-tokens"))
    throw Error("--batch-tokens requires pairs of lines as data (translate); --batch sets the size of a micro-batch");
}

void verify(const RunOptions &run, const SettingOptions &settings) {
  if (run.memory && (settings.has("recompute") || settings.has("loss-chunks")))
    throw Error("--memory excludes --recompute and --loss-chunks, which it chooses");
}

TrainSettings replaced(const SettingOptions &o, const TrainSettings &base) {
  TrainSettings s = base;
  cut(s, 1); // flags mean uncut micro-batches
  const std::pair asked(s.batch, s.accumulate);
  for (const Setting &setting : settingTable())
    if (const auto text = o.given.find(setting.flag); text != o.given.end())
      setting.take(s, text->second);
  if (std::pair(s.batch, s.accumulate) == asked)
    cut(s, base.parts);
  return s;
}

TrainSettings applied(const SettingOptions &o, const TrainSettings &base) {
  const TrainSettings s = replaced(o, base);
  verify(s);
  expectEffect(o, s);
  return s;
}

} // namespace kiln
