// The host's cost of a launch: an empty kernel of six matrices, one program, on one thread. This leaves the checks of
// the arguments, the lookup of the executable, packing and the call. The budget is 2 µs.

#include "tools/kiln-bench/bench.h"

#include <fmt/format.h>

using namespace kiln;

static void touchNothing(View, View, View, View, View, View) {}
static const Kernel idle = kernel("idle", touchNothing);

/// The budget of a launch in seconds.
static constexpr double budget = 2e-6;
/// Launches in a plan, and in one timed call, so that reading the clock costs little.
static constexpr int launches = 100;

void bench::benchLaunch(Setting &setting) {
  setting.report.section("host time of a launch of six matrices, baseline: its budget");
  std::vector<Tensor> tensors;
  std::vector<Arg> args;
  for (int i = 0; i < 6; ++i)
    args.emplace_back(tensors.emplace_back(zeroTensor(setting, {16, 64})).ref());
  const std::shared_ptr<const Executable> executable = compile(*setting.device, idle, args);
  Plan plan;
  plan.launches.assign(launches, {&idle, "", programs(1), args});
  const std::vector<double> seconds = bench::measure({[&] {
                                                        for (int i = 0; i < launches; ++i)
                                                          launch(*setting.device, idle, programs(1), args);
                                                      },
                                                      [&] { run(*setting.device, plan); },
                                                      [&] {
                                                        for (int i = 0; i < launches; ++i)
                                                          setting.device->launch(*executable, programs(1), args);
                                                      }},
                                                     setting.rounds(), setting.quick ? 0 : 0.05);
  const char *const names[] = {"launch(kernel)", "run(plan), each of its launches", "Device::launch(executable)"};
  for (size_t i = 0; i < seconds.size(); ++i) {
    const double each = seconds[i] / launches;
    setting.report.add({.bench = "launch",
                        .shape = names[i],
                        .metric = "us",
                        .value = each * 1e6,
                        .peer = "budget",
                        .peerValue = budget * 1e6,
                        .ratio = budget / each});
  }
}
