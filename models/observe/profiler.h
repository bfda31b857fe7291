// Profiling of a trainer: when each launch of its steps ran, and the work of the host meanwhile.

#pragma once

#include "models/observe/trace.h"
#include "models/train/options.h"
#include "models/train/trainer.h"
#include "runtime/Meters.h"

namespace kiln {

/// Measures the peaks of the device: GEMMs or multiply-adds of `type`, and bytes a second of a sum of two arrays. Takes
/// about a second, and 192 MB of device memory. Nothing for a device whose clock does not measure time.
Roof measureRoof(Device &device, Type type, std::optional<Precision> precision);

class Profiler {
public:
  /// From now on the trainer runs its launches one by one and records them. The trainer must outlive it.
  explicit Profiler(Trainer &trainer);
  ~Profiler();
  Profiler(const Profiler &) = delete;

  /// Returns the result of `work`, and records its time.
  template <class Work> auto note(Track track, const std::string &name, Work work) {
    const Mark mark{*this, track, name};
    return work();
  }
  /// To be called after each step: reads the times of the launches since the last call from the device, which has
  /// finished them.
  void endStep();

  const std::vector<Stretch> &stretches() const { return noted; }
  /// The facts that chromeTrace() and profileText() need.
  TraceFacts facts(const Roof &roof) const;
  bool isTime() const { return clock->isTime(); }

private:
  struct Mark {
    Mark(Profiler &profiler, Track track, std::string name)
        : profiler(profiler), track(track), name(std::move(name)), begin(secondsNow()) {}
    ~Mark() { profiler.noted.push_back({track, name, "", begin, secondsNow()}); }
    Profiler &profiler;
    const Track track;
    const std::string name;
    const double begin;
  };

  Trainer &trainer;
  const std::unique_ptr<DeviceClock> clock;
  std::vector<Stretch> noted;
  std::vector<Stretch> asked; // launches without their times, and marks before the first launch of each list
  std::vector<size_t> lists;  // end of each list in these
};

/// Returns the result of `work`, recorded if there is a profiler.
template <class Work> auto noted(Profiler *profiler, Track track, const std::string &name, Work work) {
  return profiler ? profiler->note(track, name, work) : work();
}

//===-- Some steps of a run -------------------------------------------------------------------------------------===//
// Profiling of some steps of a run: `--profile A:B`.

class ProfiledSteps {
public:
  /// All arguments must outlive it. The trace is written to `trace`.
  ProfiledSteps(Trainer &trainer, const StepRange &steps, std::string trace)
      : trainer(trainer), steps(steps), trace(std::move(trace)) {}

  /// The profiler for step `number`, from before it begins; none if that step is not profiled.
  Profiler *at(int64_t number);
  /// To be called after step `number`, or at the end of the run. Returns the tables once the last of the steps is done,
  /// and writes the trace. Throws Error (device) if it cannot be written. If the run ended without any of the steps, it
  /// says so.
  std::optional<std::string> after(int64_t number, bool ends);

private:
  Trainer &trainer;
  const StepRange steps;
  const std::string trace;
  Roof roof;
  std::optional<Profiler> profiler;
  bool isTold = false; // the result was returned
};

} // namespace kiln
