// The findings of a launch, from all threads. Each kind of finding at a place of the source is kept once, with its
// first case and a count.

#pragma once

#include "runtime/simulator/ptx/Module.h"

#include <map>
#include <mutex>
#include <string>

namespace kiln::simulator {

/// The checks; nameOf() gives their spelling in `--check` and reports.
enum class Check : uint8_t {
  bounds,
  alignment,
  uninitialised,
  race,
  raceLanes,
  racePrograms,
  inFlight,
  proxy,
  barrier,
  uniform,
  shuffle,
  deadlock,
  readOnly,
  trap,
  mbarrier,
  tensorMap,
  wgmma,
  registers
};
inline constexpr int checkCount = static_cast<int>(Check::registers) + 1;
const char *nameOf(Check check);

/// A set of checks.
class Checks {
public:
  bool has(Check check) const { return bits >> static_cast<int>(check) & 1; }
  void set(Check check, bool on) {
    bits = on ? bits | 1u << static_cast<int>(check) : bits & ~(1u << static_cast<int>(check));
  }
  /// Whether any check needs the history of memory (shadow memory).
  bool needShadow() const;
  /// Parses names with commas, in order. `all` adds all checks; `-race` or `-all` removes: "all,-race",
  /// "bounds,alignment". A text that begins with `-` starts from all checks. Throws Error for an unknown name.
  static Checks named(const std::string &text);

private:
  uint32_t bits = ~uint32_t{0};
};

struct Finding {
  Check check = Check::bounds;
  ptx::Place place;
  std::string text; // of the first case
  int64_t count = 0;
};

/// Thread-safe.
class Findings {
public:
  void add(Check check, const ptx::Place &place, const std::string &text);
  bool empty() const;
  /// Sorted by place in the text.
  std::vector<Finding> list() const;
  void clear();

private:
  mutable std::mutex mutex;
  std::map<std::pair<int, Check>, Finding> found; // by PTX line
};

} // namespace kiln::simulator
