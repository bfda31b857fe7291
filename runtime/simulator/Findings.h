// What a launch did wrong, collected from all threads: each kind at each place of the source once, with the first case
// and how often it came.

#pragma once

#include "runtime/simulator/ptx/Module.h"

#include <map>
#include <mutex>
#include <string>

namespace kiln::simulator {

/// Names of the checks, as `--check` and reports spell them.
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
  /// Whether any needs to know what happened to memory before.
  bool needShadow() const;
  /// Names with commas, taken in order; `all` is all, `-race` or `-all` takes away: "all,-race", "bounds,alignment". A
  /// text that begins with `-` takes away from all. Throws Error for a name that is no check's.
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
  /// By place in the text.
  std::vector<Finding> list() const;
  void clear();

private:
  mutable std::mutex mutex;
  std::map<std::pair<int, Check>, Finding> found; // by PTX line
};

} // namespace kiln::simulator
