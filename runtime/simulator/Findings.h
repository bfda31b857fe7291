// What a launch did wrong, collected from all threads: each kind at each place of the source once, with the first case
// and how often it came.

#pragma once

#include "runtime/simulator/ptx/Module.h"

#include <map>
#include <mutex>

namespace kiln::simulator {

/// Names of the checks, as `--check` and reports spell them.
enum class Check : uint8_t {
  bounds,
  alignment,
  uninitialised,
  race,
  inFlight,
  barrier,
  shuffle,
  deadlock,
  readOnly,
  trap
};
inline constexpr int checkCount = static_cast<int>(Check::trap) + 1;
const char *nameOf(Check check);

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
