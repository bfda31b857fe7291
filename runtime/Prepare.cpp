// Plans: finding or making the executables of all of their launches, then running them.
//
// Threads take the launches in order. Looking a launch up and tracing it is done by one thread at a time, for what one
// trace asks for decides whether it serves the next launch too: so no specialisation is begun twice, and no thread
// waits for another's. Making the code of what was traced is done by all of them at once.

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
/// The executables of a plan's launches, made by all who call work().
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

  /// Launches that may have to be compiled for.
  size_t left() const { return launches.size() - next; }

  /// Compiles until there is nothing more to begin.
  void work() {
    while (std::optional<Work> mine = begin())
      if (!finishCompiling(request(mine->launch), mine->begun))
        failed = true;
  }

  /// The executables in the order of the launches, once every work() has returned; throws the first error.
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

  /// Traces the next launch that no executable serves, if there is one. After an error nothing more is begun: whatever
  /// comes before the first one has been.
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
  size_t next = 0;      // launches before it have an executable, an error, or somebody who makes one
  std::vector<SharedExecutable> executables;
  std::atomic<bool> failed = false;
};
} // namespace

/// Addresses that a thread takes when it compiles: its stack, a heap of its own, and what it keeps there.
static constexpr size_t roomOfThread = size_t{160} << 20;

/// Calls work() on the calling thread and on `others` more, or as many as the system lets us have.
static void workTogether(Preparation &preparation, size_t others) {
  std::vector<std::jthread> threads;
  try {
    while (threads.size() < others && lowering::hasRoom((threads.size() + 2) * roomOfThread))
      threads.emplace_back([&] { preparation.work(); });
  } catch (const std::system_error &) { // fewer threads do as well
  }
  preparation.work();
}

/// The bytes of a workspace; throws Error when it has gaps.
static int64_t bytesOfWorkspace(const TensorRef &workspace) {
  if (!workspace.data)
    return 0;
  if (!workspace.isDense())
    throw Error(fmt::format("expected a workspace of dense memory, but got one of shape {} with strides {}",
                            textOf(workspace.extents), textOf(workspace.strides)));
  return workspace.bytes();
}

/// Throws Error unless the arguments in the workspace lie in it.
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

/// Throws Error unless every launch has a kernel and the workspace holds what the plan wants of it.
static void checkPlan(const Plan &plan, const TensorRef &workspace) {
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
  checkPlan(plan, workspace);
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
    const ArgumentBlock block = pack(executable->signature(), launch, workspace.data);
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
  device.launch(*compile(device, kernel, args, config), grid, args);
}

} // namespace kiln
