// A JIT compilation in two halves, so that several can run concurrently. The first half finds the executable in memory
// or traces the kernel. A trace shows which later requests its executable serves. The second half generates the code;
// it takes nearly all of the time and runs on the thread that began the compilation.

#pragma once

#include "lowering/Backend.h"
#include "runtime/Device.h"
#include "runtime/MemoryCache.h"

#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace kiln {

/// A request for an executable. It refers to the caller's objects.
struct Request {
  Device &device;
  const Kernel &kernel;
  const std::vector<Arg> &args;
  const std::string &config;
  void *workspace = nullptr; // begin of workspace regions
  std::span<const Launch::Problem> others =
      {}; // further problems of a grouped launch, for a device that runs all at once
};

struct TracedKernel;

/// An executable that is ready or being compiled, and the input of its compilation for the thread that has to finish
/// it.
struct Begun {
  PendingExecutable executable;
  std::shared_ptr<Source> source;
  std::shared_ptr<TracedKernel> traced; // null unless this thread has to finish it
};

/// The executable if it is in memory or being compiled, else null.
PendingExecutable findCompiled(const Request &request);
/// Finds the executable, or traces the kernel and registers it as being compiled. Throws Error if the arguments do not
/// fit, the kernel has a mistake, or freeze() forbids compiling.
Begun beginCompiling(const Request &request);
/// Compiles if beginCompiling() left it to this thread. An error is thrown in every thread that waits for the
/// executable; returns whether there was none.
bool finishCompiling(const Request &request, Begun &begun);

/// MLIR contexts for compilations. Creating one takes longer than tracing a small kernel, so contexts are reused. A
/// context is dropped after an exception. Thread-safe; a context belongs to one thread from take() to give().
class ContextPool {
public:
  struct Context {
    Context();
    mlir::MLIRContext context;
    int served = 0; // compilations; types and attributes stay in a context, so it is retired after some
  };
  /// A context with the dialects that tracing needs.
  std::unique_ptr<Context> take();
  /// Takes a context back after its module was destroyed.
  void give(std::unique_ptr<Context> context);

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> idle;
};

/// The folder that KILN_DUMP names; empty without it.
std::string dumpFolder();

/// Writes the stages of one compilation to `dumpFolder()/<kernel>-<key>/00-tile.mlir` and so on, in order. Throws Error
/// (device) on failure.
lowering::StageSink dumpStages(const std::string &kernel, const std::string &key);

} // namespace kiln
