// How a launch is run: what a GPU leaves open, and what to look for. Each setting has a name, which is a flag of
// kiln-sim and a word of KILN_SIM.

#pragma once

#include "runtime/simulator/AsyncCopies.h"
#include "runtime/simulator/Findings.h"

#include <array>
#include <span>
#include <vector>

namespace kiln::simulator {

/// In which order blocks and the warps of a block get their turns.
enum class Order : uint8_t { forward, reverse, random };

struct Schedule {
  Order order = Order::forward;
  Delivery delivery = Delivery::late;
  uint64_t seed = 0;
  Checks checks = {};
  /// Approximate f32 instructions err by up to so many times what the PTX ISA allows; 0: not at all.
  int errorTimes = 0;
  int threads = 0; // of the host; 0: as many as there are cores
  /// Instructions of a warp after which a launch that has not ended is given up; 0: none.
  int64_t mostSteps = 0;
  /// The coordinates of the blocks that run, all others are left out; empty: all run. No setting: a tool's business.
  std::vector<std::array<int, 3>> only = {};

  /// Reads settings such as "order=reverse check=all,-race-lanes seed=3"; what it does not name stays as it is without.
  /// Throws Error for a name or value that is none, with those there are.
  static Schedule named(const std::string &text);
};

/// A setting of a schedule.
struct Setting {
  const char *name;
  const char *help;
  /// Throws Error for a value that is none of this setting's.
  void (*set)(Schedule &schedule, const std::string &value);
};
std::span<const Setting> settings();

} // namespace kiln::simulator
