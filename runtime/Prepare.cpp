// Prepares plans: finds or compiles the executables of all launches, and runs them.
//
// Threads take the launches in order. Only one thread at a time looks up and traces a launch: whether its code can run
// the next launch, too, depends on the extents that the trace reads. Thus no specialisation is compiled twice, and no
// thread waits for another's. Traced kernels are compiled by all threads in parallel.

#include "lowering/Backend.h"
#include "lowering/Crashes.h"
#include "runtime/Arguments.h"
#include "runtime/Compilation.h"
#include "runtime/Compile.h"
#include "runtime/Threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace kiln {

using SharedExecutable = std::shared_future<std::shared_ptr<const Executable>>;

namespace {
/// The executables of a plan's launches, compiled by all threads that call work().
class Preparation {
public:
  Preparation(Device &device, const Plan &plan, void *workspace)
      : device(device), launches(plan.launches), workspace(workspace), executables(launches.size()) {
    for (; next < launches.size(); ++next) {
      const PendingExecutable found = findCompiled(request(next));
      if (!found)
        return;
      executables[next] = found->executable;
    }
  }

  /// The number of launches that may need a compilation.
  size_t left() const { return launches.size() - next; }

  /// Compiles until no launch is left to begin.
  void work() {
    while (std::optional<Work> mine = begin())
      if (!finishCompiling(request(mine->launch), mine->begun))
        failed = true;
  }

  /// The executables in the order of the launches. Call it after every work() has returned. Throws the first error.
  const std::vector<SharedExecutable> &result() const {
    for (const SharedExecutable &executable : executables)
      executable.get();
    return executables;
  }

private:
  struct Work {
    size_t launch;
    Begun begun;
  };

  Request request(size_t launch) const {
    const Launch &of = launches[launch];
    return {device, *of.kernel, of.args, of.config, workspace, of.others};
  }

  /// Traces the next launch without an executable, if there is one. After an error nothing more is begun; all launches
  /// before the first error have been.
  std::optional<Work> begin() {
    const std::lock_guard lock(beginning);
    while (!failed && next < launches.size()) {
      const size_t launch = next++;
      try {
        Begun begun = beginCompiling(request(launch));
        executables[launch] = begun.executable->executable;
        if (begun.traced)
          return Work{launch, std::move(begun)};
      } catch (...) {
        std::promise<std::shared_ptr<const Executable>> failure;
        failure.set_exception(std::current_exception());
        executables[launch] = failure.get_future().share();
        failed = true;
      }
    }
    return {};
  }

  Device &device;
  const std::vector<Launch> &launches;
  void *const workspace;
  std::mutex beginning; // guards the next two
  size_t next = 0;      // launches before it are compiled, failed, or being compiled
  std::vector<SharedExecutable> executables;
  std::atomic<bool> failed = false;
};
} // namespace

/// Address space of a compiling thread: its stack and its heap.
static constexpr size_t roomOfThread = size_t{160} << 20;

/// Calls work() on the calling thread and on up to `others` more, as many as the system grants.
static void workTogether(Preparation &preparation, size_t others) {
  std::vector<std::jthread> threads;
  try {
    while (threads.size() < others && lowering::hasRoom((threads.size() + 2) * roomOfThread))
      threads.emplace_back([&] { preparation.work(); });
  } catch (const std::system_error &) { // continue with fewer threads
  }
  preparation.work();
}

/// The size of a workspace in bytes. Throws Error if it is not dense.
static int64_t bytesOfWorkspace(const TensorRef &workspace) {
  if (!workspace.data)
    return 0;
  if (!workspace.isDense())
    throw Error(fmt::format("expected a workspace of dense memory, but got one of shape {} with strides {}",
                            textOf(workspace.extents), textOf(workspace.strides)));
  return workspace.bytes();
}

/// Throws Error unless all workspace arguments are within the plan's workspace.
static void checkRegions(const Plan &plan, const Launch &launch, const std::vector<Arg> &args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Arg &arg = args[i];
    if (arg.kind == Arg::Kind::workspace &&
        (arg.workspaceOffset < 0 || arg.ref.bytes() > plan.workspaceBytes - arg.workspaceOffset))
      throw Error(fmt::format(
          "kernel '{}': expected {} to lie in the plan's workspace of {} bytes, but got {} at byte {}",
          launch.kernel->name, launch.kernel->called(i), plan.workspaceBytes, textOf(arg), arg.workspaceOffset));
  }
}

/// Throws Error unless every launch has a kernel and the workspace is large enough for the plan and on the device.
static void checkPlan(const Device &device, const Plan &plan, const TensorRef &workspace) {
  if (workspace.device && workspace.device != memoryDevice(device.name()))
    throw Error(
        fmt::format("expected a workspace on device '{}', but got one on '{}'", device.name(), *workspace.device));
  if (const int64_t bytes = bytesOfWorkspace(workspace); bytes < plan.workspaceBytes)
    throw Error(fmt::format("expected a workspace of {} bytes, but got {}", plan.workspaceBytes, bytes));
  for (size_t at = 0; at < plan.launches.size(); ++at) {
    const Launch &launch = plan.launches[at];
    if (!launch.kernel)
      throw Error(fmt::format("expected launch {} of a plan to have a kernel, but got none", at));
    checkRegions(plan, launch, launch.args);
    for (const Launch::Problem &other : launch.others)
      checkRegions(plan, launch, other.args);
  }
}

static std::atomic<int> &threadsToCompile() {
  static std::atomic<int> threads = threadsAsked();
  return threads;
}

int compileThreads() { return threadsToCompile(); }

void setCompileThreads(int threads) {
  checkThreads(threads);
  threadsToCompile() = threads;
}

PreparedPlan prepare(Device &device, const Plan &plan, const TensorRef &workspace) {
  const auto isVariadic = [](const Launch &launch) { return launch.kernel && launch.kernel->isVariadic(); };
  if (std::any_of(plan.launches.begin(), plan.launches.end(), isVariadic))
    return prepare(device, expanded(plan), workspace);
  checkPlan(device, plan, workspace);
  const auto isGroup = [](const Launch &launch) { return !launch.others.empty(); };
  if (!device.backend().facts().problems && std::any_of(plan.launches.begin(), plan.launches.end(), isGroup))
    return prepare(device, ungrouped(plan), workspace);
  Preparation preparation(device, plan, workspace.data);
  if (const size_t left = preparation.left())
    workTogether(preparation, std::min<size_t>(left, compileThreads()) - 1);
  const std::vector<SharedExecutable> &executables = preparation.result();
  std::vector<LaunchList::Ready> launches;
  for (size_t i = 0; i < executables.size(); ++i) {
    const std::shared_ptr<const Executable> &executable = executables[i].get();
    const Launch &launch = plan.launches[i];
    const ArgumentBlock block = pack(*executable, launch, workspace.data);
    launches.push_back({executable, {block.begin(), block.end()}});
  }
  PreparedPlan ready;
  ready.launches = device.list(std::move(launches));
  return ready;
}

void PreparedPlan::run() const {
  if (launches)
    launches->run();
}

void run(Device &device, const Plan &plan, const TensorRef &workspace) { prepare(device, plan, workspace).run(); }

void launch(Device &device, const Kernel &kernel, Grid grid, const std::vector<Arg> &args, const std::string &config) {
  if (kernel.isVariadic()) {
    const Expanded form = expanded(kernel, args);
    return launch(device, *form.kernel, grid, form.args, config);
  }
  device.launch(*compile(device, kernel, args, config), grid, args);
}

} // namespace kiln
