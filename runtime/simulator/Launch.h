// Runs a kernel of a PTX text with a parameter block, in a schedule.

#pragma once

#include "runtime/simulator/AsyncCopies.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Findings.h"
#include "runtime/simulator/Printf.h"

#include <array>
#include <span>
#include <vector>

namespace kiln::simulator {

/// The order in which CTAs, and the warps of a CTA, get their turns.
enum class Order : uint8_t { forward, reverse, random };

/// The schedule of a launch, where a GPU is free to choose, and the enabled checks. Each setting has a name: a flag of
/// kiln-sim and a word of KILN_SIM.
struct Schedule {
  Order order = Order::forward;
  Delivery delivery = Delivery::late;
  uint64_t seed = 0;
  Checks checks = {};
  /// Injected error of approximate f32 instructions, as a multiple of the bound in the PTX ISA; 0: none.
  int errorTimes = 0;
  int threads = 0; // host threads; 0: one per core
  /// Maximum instructions of a warp; then the launch is given up; 0: unlimited.
  int64_t maxSteps = 0;
  /// The coordinates of the CTAs to run; empty: all. For tools; not a setting.
  std::vector<std::array<int, 3>> only = {};

  /// Parses settings such as "order=reverse check=all,-race-lanes seed=3". Other settings keep their defaults. Throws
  /// Error for an unknown name or value and lists the known ones.
  static Schedule named(const std::string &text);
};

/// A setting of a schedule.
struct Setting {
  const char *name;
  const char *help;
  /// Throws Error for an invalid value.
  void (*set)(Schedule &schedule, const std::string &value);
};
std::span<const Setting> settings();

/// Runs `grid` CTAs of `block` threads. `parameters` is the parameter block of program.parameterBytes bytes. Findings
/// go to `findings`, counts to `metrics`, and output to `console` (standard output without one). `views` names
/// elements. Throws Error for a launch that no GPU accepts.
void launch(const Program &program, const Extents &grid, const Extents &block, uint32_t dynamicShared,
            const char *parameters, const Memory &memory, Findings &findings, const Schedule &schedule = {},
            Metrics *metrics = nullptr, Console *console = nullptr, const ViewNames *views = nullptr);

} // namespace kiln::simulator
