// Watching a trainer: when each launch of its steps ran, and what the host did meanwhile.

#pragma once

#include "models/observe/trace.h"
#include "models/train/trainer.h"
#include "runtime/Meters.h"

namespace kiln {

/// What the device does at best, measured now: products or multiply-adds of `type`, and bytes that a sum of two arrays
/// moves. Takes a second or so, and 192 MB of its memory meanwhile. Nothing for a device whose clock is no time.
Roof roofOf(Device &device, Type type, std::optional<Precision> precision);

class Profiler {
public:
  /// From now on the trainer's launches are noted, which it asks for one by one. The trainer must outlive it.
  explicit Profiler(Trainer &trainer);
  ~Profiler();
  Profiler(const Profiler &) = delete;

  /// What `work` gives; the time that it takes is noted.
  template <class Work> auto note(Track track, const std::string &name, Work work) {
    const Mark mark{*this, track, name};
    return work();
  }
  /// Takes the times of the launches since the last call from the device, which has ended them: after each step.
  void endStep();

  const std::vector<Stretch> &stretches() const { return noted; }
  /// What chromeTrace() and profileText() need to know.
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
  std::vector<Stretch> asked; // launches without their times, and marks before the first of each list
  std::vector<size_t> lists;  // where in these each list ends
};

/// What `work` gives, noted where there is a profiler.
template <class Work> auto noted(Profiler *profiler, Track track, const std::string &name, Work work) {
  return profiler ? profiler->note(track, name, work) : work();
}

} // namespace kiln
