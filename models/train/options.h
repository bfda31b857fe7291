// Options of a run of any model: its folder, its machine, its budgets, and the settings that differ from the model's
// own.

#pragma once

#include "models/parallel/collective.h"
#include "models/train/settings.h"
#include "runtime/Device.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace kiln {

/// Steps `first` to `last` of a run, both included.
struct StepRange {
  int64_t first = 0, last = 0;
  bool operator==(const StepRange &) const = default;
};
/// `A:B`, or `A` for one step. Throws Error, which names `flag`, for another text, and unless 1 ≤ A ≤ B.
StepRange stepRangeNamed(const std::string &flag, const std::string &text);

//===-- Memory --------------------------------------------------------------------------------------------------===//

/// Bytes; or `auto`: nine tenths of the machine's free memory.
struct MemoryBudget {
  std::optional<int64_t> bytes;
  bool operator==(const MemoryBudget &) const = default;
};

/// `auto`, or a number with its unit: KiB, MiB, GiB, TiB, or kB, MB, GB, TB. Throws Error, which names `flag`, for
/// another text.
MemoryBudget budgetNamed(const std::string &flag, const std::string &text);
/// `512 MiB`, `3.25 GiB`: rounded up.
std::string sizeText(int64_t bytes);

/// Resident memory of this process.
int64_t residentBytes();
/// The memory that the process could allocate in addition: the system's available memory, at most the rest of its
/// control group's limit.
int64_t availableBytes();
/// Whether the device's allocations are memory of this process.
bool isHostMemory(const Device &device);

//===-- Options -------------------------------------------------------------------------------------------------===//

/// The machine to run on.
struct MachineOptions {
  std::string device = "cpu"; // `cuda` is a GPU for each rank of a machine, cuda:0 for the first one
  int threads = 0;            // 0: the device's default
};
/// Opens the device of the options.
std::shared_ptr<Device> openDevice(const MachineOptions &options);
/// As above, for one of several ranks: unless the options or KILN_THREADS give a number of threads, the ranks of a
/// machine share its cores.
std::shared_ptr<Device> openDevice(const MachineOptions &options, const Collective &ranks);

struct RunOptions {
  std::string out; // the run's folder
  MachineOptions machine;
  int64_t stopAfter = 0; // 0: run to the last step
  bool resume = false;
  std::optional<int64_t> resumeStep;      // step of the checkpoint to resume; default: the newest
  bool overwrite = false;                 // removes the checkpoints in `out`
  std::optional<MemoryBudget> memory;     // memory budget
  std::optional<StepRange> profile;       // steps to profile
  std::optional<std::string> trace;       // file of the trace; default: in the run's folder
  std::optional<std::string> tensorboard; // folder for TensorBoard's events
  bool mainLog = false;                   // writes llm.c's main.log in the run's folder
  bool curve = false;                     // draws the losses so far, below the bar
};

/// The setting flags of a command line, as texts (models/train/setting_table.h).
struct SettingOptions {
  std::map<std::string, std::string> given;
  bool has(const std::string &flag) const { return given.count(flag) > 0; }
};
/// Distributes the micro-batches of a step over ranks. If there are fewer micro-batches than ranks, they are cut into
/// smaller ones, so that a step keeps its sequences; the returned line says so. Throws Error if they cannot be cut: for
/// data that cuts its micro-batches itself (`isCut` false), and for llm.c's order, whose windows they are.
std::optional<std::string> divide(TrainSettings &settings, int64_t ranks, bool isCut = true);

/// Throws Error if both decide about recomputation.
void verify(const RunOptions &run, const SettingOptions &settings);
/// Throws Error for a given setting that has no effect under `settings`, such as --pack without packed documents.
void expectEffect(const SettingOptions &options, const TrainSettings &settings);
/// Throws Error for --batch-tokens, in programs whose micro-batches have a fixed number of sequences.
void expectNoBatchTokens(const SettingOptions &options);
/// `base` with the given settings replaced. They refer to micro-batches before division over ranks: a command that is
/// repeated for resuming changes nothing.
TrainSettings replaced(const SettingOptions &options, const TrainSettings &base);
/// As above. Throws Error for a setting out of its range or without effect.
TrainSettings applied(const SettingOptions &options, const TrainSettings &base);

} // namespace kiln
