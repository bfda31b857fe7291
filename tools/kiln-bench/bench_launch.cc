// The host's cost of a launch: an empty kernel of six matrices, one program, on one thread. This leaves the checks of
// the arguments, the lookup of the executable, packing and the call. The budget is 2 µs. A launch from C also converts
// its tensors.

#include "tools/kiln-bench/bench.h"
#include "tools/libkiln/handles.h"

#include <fmt/format.h>

using namespace kiln;

static void touchNothing(View, View, View, View, View, View) {}
static const Kernel idle = kernel("idle", touchNothing);

/// The budget of a launch in seconds.
static constexpr double budget = 2e-6;
/// Launches in a plan, and in one timed call, so that reading the clock costs little.
static constexpr int launches = 100;

namespace {
/// A launch of `idle` through the C API, on memory of its device.
class ThroughC {
public:
  ThroughC(const std::string &device, int threads) {
    check(kiln_device_open(device.c_str(), &handle));
    check(kiln_device_threads(handle, threads));
    kiln_tensor tensor = {nullptr, 0, 0, 2, 2, 32, 1, shape, nullptr, 0};
    kiln_device_place(handle, &tensor.device_type, &tensor.device_id);
    for (size_t i = 0; i < std::size(tensors); ++i) {
      tensors[i] = tensor;
      check(kiln_allocate(handle, shape[0] * shape[1] * 4, &tensors[i].data));
      arguments[i] = kiln_write(&tensors[i]);
    }
  }
  ThroughC(const ThroughC &) = delete;
  ~ThroughC() {
    for (const kiln_tensor &tensor : tensors)
      kiln_release(handle, tensor.data);
    kiln_device_close(handle);
  }
  void operator()() const { check(kiln_launch(handle, &kernel, grid, arguments, std::size(arguments), nullptr)); }

private:
  static void check(kiln_status status) {
    if (status)
      throw Error(kiln_error());
  }

  const kiln_kernel kernel = {&idle};
  const int64_t grid[3] = {1, 1, 1};
  int64_t shape[2] = {16, 64};
  kiln_device *handle = nullptr;
  kiln_tensor tensors[6] = {};
  kiln_argument arguments[6] = {};
};
} // namespace

void bench::benchLaunch(Setting &setting) {
  setting.report.section("host time of a launch of six matrices, baseline: its budget");
  std::vector<Tensor> tensors;
  std::vector<Arg> args;
  for (int i = 0; i < 6; ++i)
    args.emplace_back(tensors.emplace_back(zeroTensor(setting, {16, 64})).ref());
  Device &device = *setting.device;
  const std::shared_ptr<const Executable> executable = compile(device, idle, args);
  Plan plan;
  plan.launches.assign(launches, {&idle, "", programs(1), args});
  const ThroughC throughC(device.name(), setting.threads);
  const auto often = [](auto body) {
    return [=] {
      for (int i = 0; i < launches; ++i)
        body();
    };
  };
  const Tensor *const t = tensors.data();
  const std::pair<const char *, Contender> rows[] = {
      {"launch(kernel)", often([&] { launch(device, idle, programs(1), args); })},
      {"launch(kernel, {x, y, …})",
       often([&, t] { launch(device, idle, programs(1), {t[0], t[1], t[2], t[3], t[4], t[5]}); })},
      {"kiln_launch, from C", often([&] { throughC(); })},
      {"run(plan), each of its launches", [&] { run(device, plan); }},
      {"Device::launch(executable)", often([&] { device.launch(*executable, programs(1), args); })}};
  std::vector<Contender> contenders;
  for (const auto &[name, contender] : rows)
    contenders.push_back(contender);
  const std::vector<double> seconds = bench::measure(contenders, setting.rounds(), setting.quick ? 0 : 0.05);
  for (size_t i = 0; i < seconds.size(); ++i) {
    const double each = seconds[i] / launches;
    setting.report.add({.shape = rows[i].first,
                        .metric = "us",
                        .value = each * 1e6,
                        .peer = "budget",
                        .peerValue = budget * 1e6,
                        .ratio = budget / each});
  }
}
