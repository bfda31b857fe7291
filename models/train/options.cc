// Parses and applies options, and opens the device.

#include "models/train/options.h"
#include "models/train/number_text.h"
#include "models/train/setting_table.h"
#include "models/train/settings.h"
#include "runtime/Compile.h"
#include "runtime/Device.h"
#include "runtime/cuda/CudaDevice.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <unistd.h>
#include <utility>

namespace kiln {

StepRange stepRangeNamed(const std::string &flag, const std::string &text) {
  const size_t colon = text.find(':');
  const auto first = numberIn<int64_t>(flag, text.substr(0, colon));
  const StepRange range = {first, colon == std::string::npos ? first : numberIn<int64_t>(flag, text.substr(colon + 1))};
  if (range.first < 1 || range.last < range.first)
    throw Error(
        fmt::format("'{}' is no range of steps for '{}'; expected A:B (steps A to B, with 1 <= A <= B) or A (one "
                    "step)",
                    text, flag));
  return range;
}

//===-- Memory --------------------------------------------------------------------------------------------------===//

static const std::pair<const char *, double> units[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                                                        {"TiB", 0x1p40}, {"kB", 1e3},     {"MB", 1e6},
                                                        {"GB", 1e9},     {"TB", 1e12}};

MemoryBudget budgetNamed(const std::string &flag, const std::string &text) {
  if (text == "auto")
    return {};
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string unit = stop + (*stop == ' ');
  if (error == std::errc() && number > 0)
    for (const auto &[name, size] : units)
      if (unit == name && number * size <= 0x1p60)
        return {static_cast<int64_t>(std::floor(number * size))};
  throw Error(
      fmt::format("'{}' is no size for '{}'; expected auto, or a number of KiB, MiB, GiB, TiB, kB, MB, GB or TB "
                  "such as 6GiB",
                  text, flag));
}

std::string sizeText(int64_t bytes) {
  const double mebibytes = std::ceil(static_cast<double>(bytes) / 0x1p20);
  return mebibytes < 1024 ? fmt::format("{:.0f} MiB", mebibytes)
                          : fmt::format("{:.2f} GiB", std::ceil(mebibytes / 1024 * 100) / 100);
}

int64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// The number in a file; none if it has another content, as `max` in control groups.
static std::optional<int64_t> numberIn(const char *path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

int64_t availableBytes() {
  int64_t available = std::numeric_limits<int64_t>::max();
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;)
    if (word == "MemAvailable:" && file >> available)
      available *= 1024;
  const std::optional<int64_t> most = numberIn("/sys/fs/cgroup/memory.max"),
                               taken = numberIn("/sys/fs/cgroup/memory.current");
  return most && taken ? std::min(available, std::max<int64_t>(0, *most - *taken)) : available;
}

bool isHostMemory(const Device &device) { return !device.name().starts_with("cuda"); }

//===-- Options -------------------------------------------------------------------------------------------------===//

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
static std::string chooseDevice(const std::string &asked, const Collective &ranks) {
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
  own.device = chooseDevice(options.device, ranks);
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
  const std::string dtype = fmt::format("--dtype {}", dtypeName(s.type));
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
