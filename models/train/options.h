// What a user may say about a run of any model: its folder, its machine, and what differs from the settings that the
// model comes with.

#pragma once

#include "models/train/settings.h"
#include "runtime/Device.h"

#include <memory>
#include <optional>
#include <string>

namespace kiln {

/// Which machine runs the model.
struct MachineOptions {
  std::string device = "cpu";
  int threads = 0; // 0: the device's own choice
};
/// Opens the device that the options name.
std::shared_ptr<Device> openDevice(const MachineOptions &options);

struct RunOptions {
  std::string out; // the run's folder
  MachineOptions machine;
  int64_t saveEvery = 0; // 0: at the end only
  int64_t stopAfter = 0; // 0: go on to the last step
  int64_t keep = 2;
  bool resume = false;
  std::optional<int64_t> resumeStep; // of the checkpoint to go on from; the newest when not given
  bool overwrite = false;            // of the checkpoints in `out`
};

struct SettingOptions {
  std::optional<int64_t> batch, accumulate, steps, warmup, evaluateEvery, master, scaleWindow;
  std::optional<double> rate, finalRate, decay, beta1, beta2, clip, lossScale;
  std::optional<uint64_t> seed;
  std::optional<std::string> precision, rounding; // names out of precisionNames and roundingNames
  std::optional<std::string> dtype, saveDtype;    // fp32, bf16, fp16
};
/// `base` with what the options give in its place. Throws Error for a setting out of its range or without a meaning.
TrainSettings applied(const SettingOptions &options, const TrainSettings &base);

} // namespace kiln
