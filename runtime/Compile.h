// From a kernel and its arguments to code: specialise, look in the caches, trace, lower, load; and running plans.

#pragma once

#include "runtime/Device.h"
#include "runtime/Executable.h"

namespace kiln {

/// What compiling has cost so far in this process.
struct CompileStatistics {
  int64_t compiled = 0, fromDisk = 0, fromMemory = 0;
  double milliseconds = 0; // wall clock during which some thread compiled; several at once count once
};
CompileStatistics compileStatistics();

/// The executable of `kernel` for these arguments and config (`name=value,…`; unnamed fields keep their defaults). From
/// memory, from disk (KILN_CACHE), or compiled now. Throws Error when the arguments do not fit the kernel's parameters
/// or it does not compile. From any thread; requests for one specialisation at the same time compile it once. Regions
/// of a workspace begin at `workspace`.
std::shared_ptr<const Executable> compile(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                                          const std::string &config = "", void *workspace = nullptr);

/// The executable of a launch, for all of its problems.
std::shared_ptr<const Executable> compile(Device &device, const Launch &launch, void *workspace = nullptr);

/// The backend's code for a launch, such as PTX, for tools that look at it: made or from disk, and not loaded. Nothing
/// is read at the addresses of its arguments.
std::vector<char> codeOf(Device &device, const Launch &launch, void *workspace = nullptr);

/// compile() and launch in one.
void launch(Device &device, const Kernel &kernel, Grid grid, const std::vector<Arg> &args,
            const std::string &config = "");

/// A plan whose executables are there and whose arguments are packed: running it looks nothing up. The memory that its
/// arguments lie in, its workspace and its device must outlive it.
class PreparedPlan {
public:
  PreparedPlan() = default;
  /// Launches everything in order.
  void run() const;

private:
  friend PreparedPlan prepare(Device &device, const Plan &plan, const TensorRef &workspace);
  std::shared_ptr<LaunchList> launches; // null when there is nothing to launch
};

/// Makes a plan ready to run with `workspace`. What its launches need and is not in memory is compiled, several at a
/// time on compileThreads() threads. Kernels are traced in the order of the launches; of several errors the one of the
/// first launch is thrown, as if they were compiled one after the other, and later ones may be left out. Throws Error
/// when the workspace has not plan.workspaceBytes bytes.
PreparedPlan prepare(Device &device, const Plan &plan, const TensorRef &workspace = {});

/// Runs a plan's launches in order: prepare() and PreparedPlan::run() in one. When something does not compile, nothing
/// runs.
void run(Device &device, const Plan &plan, const TensorRef &workspace = {});

/// Threads that compile at once: KILN_THREADS, else all cores. What they make never depends on it.
int compileThreads();
void setCompileThreads(int threads);

/// From now on a compile that is not in memory is an error (and back). Returns whether it was one before.
bool freeze(bool frozen = true);

/// Forgets every executable in memory; launches in progress keep theirs.
void forgetCompiled() noexcept;

} // namespace kiln
