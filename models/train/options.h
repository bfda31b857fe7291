// What a user may say about a run of any model: its folder, its machine, and what differs from the settings that the
// model comes with.

#pragma once

#include "models/observe/step_range.h"
#include "models/parallel/collective.h"
#include "models/train/memory_budget.h"
#include "models/train/settings.h"
#include "runtime/Device.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace kiln {

/// Which machine runs the model.
struct MachineOptions {
  std::string device = "cpu"; // `cuda` is a GPU for each rank of a machine, cuda:0 for the first one
  int threads = 0;            // 0: the device's own choice
};
/// Opens the device that the options name.
std::shared_ptr<Device> openDevice(const MachineOptions &options);
/// The same for one of several ranks: where neither the options nor KILN_THREADS say how many threads, those of a
/// machine share its cores.
std::shared_ptr<Device> openDevice(const MachineOptions &options, const Collective &ranks);

struct RunOptions {
  std::string out; // the run's folder
  MachineOptions machine;
  int64_t saveEvery = 1000; // 0: at the end only
  int64_t stopAfter = 0;    // 0: go on to the last step
  int64_t keep = 2;
  int64_t keepEvery = 0; // checkpoints of multiples of so many steps stay, too; 0: none does
  bool resume = false;
  std::optional<int64_t> resumeStep;      // of the checkpoint to go on from; the newest when not given
  bool overwrite = false;                 // of the checkpoints in `out`
  std::optional<MemoryBudget> memory;     // that it may take
  std::optional<StepRange> profile;       // steps whose launches are timed
  std::optional<std::string> trace;       // the file that says of them; one in the run's folder when not given
  std::optional<std::string> tensorboard; // a folder for events as TensorBoard reads them
  bool mainLog = false;                   // main.log in the run's folder, as llm.c writes it
  bool curve = false;                     // the losses so far, under the bar
};

/// What a user says of the settings: the texts of their flags (models/train/setting_table.h).
struct SettingOptions {
  std::map<std::string, std::string> given;
  bool has(const std::string &flag) const { return given.count(flag) > 0; }
};
/// Has each of several ranks take micro-batches of a step: where there are fewer of them than ranks, smaller ones, so
/// that a step has the same sequences, which the line that it returns says. Throws Error where these cannot be cut:
/// data that cuts its micro-batches itself does not allow it (`isCut` false), nor llm.c's order, whose windows they
/// are.
std::optional<std::string> divide(TrainSettings &settings, int64_t ranks, bool isCut = true);

/// Throws Error where both say what a step makes again.
void verify(const RunOptions &run, const SettingOptions &settings);
/// `base` with what the options give in its place. They speak of micro-batches as they were before they were divided:
/// a command that is given once more, to go on, changes nothing.
TrainSettings replaced(const SettingOptions &options, const TrainSettings &base);
/// The same; throws Error for a setting out of its range or without a meaning.
TrainSettings applied(const SettingOptions &options, const TrainSettings &base);

} // namespace kiln
