// The JIT compiler and its cache: from a kernel and its arguments to an executable. Also prepares and runs plans.

#pragma once

#include "runtime/Device.h"
#include "runtime/Executable.h"

namespace kiln::lowering {
struct CompilationRecord;
}

namespace kiln {

/// The cost of compiling so far in this process.
struct CompileStatistics {
  int64_t compiled = 0, fromDisk = 0, fromMemory = 0;
  double milliseconds = 0; // wall clock time in which at least one thread compiled
};
CompileStatistics compileStatistics();

/// The executable of `kernel` for these arguments and config (`name=value,…`; other fields keep their defaults). It
/// comes from memory, from disk (KILN_CACHE), or is compiled. Workspace regions begin at `workspace`. Thread-safe;
/// concurrent requests for one specialisation compile it once. Throws Error if the arguments do not fit the kernel's
/// parameters or the kernel does not compile. The executable of a variadic kernel takes the arguments that expanded()
/// gives (dialect/dsl/Plan.h).
std::shared_ptr<const Executable> compile(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                                          const std::string &config = "", void *workspace = nullptr);

/// The executable of a launch, for all of its problems.
std::shared_ptr<const Executable> compile(Device &device, const Launch &launch, void *workspace = nullptr);

/// The backend's code of a launch, such as PTX, for tools. It is compiled or comes from disk, and is not loaded. The
/// memory of the arguments is not read.
std::vector<char> codeOf(Device &device, const Launch &launch, void *workspace = nullptr);

/// The key of that code in the compile cache: launches with equal keys have equal code. The kernel is only traced.
std::string codeKeyOf(Device &device, const Launch &launch);

/// The stages of a launch's compilation (lowering/Driver.h), for tools. The memory of the arguments is not read.
lowering::CompilationRecord recordOf(Device &device, const Launch &launch, void *workspace = nullptr);

/// compile() and a launch in one.
void launch(Device &device, const Kernel &kernel, Grid grid, const std::vector<Arg> &args,
            const std::string &config = "");

/// A plan with its executables and packed arguments, so that running it needs no lookup. The memory of its arguments,
/// its workspace and its device must outlive it.
class PreparedPlan {
public:
  PreparedPlan() = default;
  /// Launches everything in order.
  void run() const;

private:
  friend PreparedPlan prepare(Device &device, const Plan &plan, const TensorRef &workspace);
  std::shared_ptr<LaunchList> launches; // null if the plan has no launches
};

/// Prepares a plan to run with `workspace`. Missing executables are compiled concurrently on compileThreads() threads.
/// Kernels are traced in the order of the launches. Of several errors that of the first launch is thrown, and later
/// kernels may not be compiled. Throws Error if the workspace has fewer than plan.workspaceBytes bytes.
PreparedPlan prepare(Device &device, const Plan &plan, const TensorRef &workspace = {});

/// Runs a plan's launches in order: prepare() and PreparedPlan::run() in one. If a kernel does not compile, nothing
/// runs.
void run(Device &device, const Plan &plan, const TensorRef &workspace = {});

/// Threads that compile concurrently: KILN_THREADS, else all cores. Their number never changes the code.
int compileThreads();
void setCompileThreads(int threads);

/// From now on (or no longer) a compilation that is not in memory is an error. Returns the previous setting.
bool freeze(bool frozen = true);

/// Drops every executable in memory; running launches keep theirs.
void forgetCompiled() noexcept;

} // namespace kiln
