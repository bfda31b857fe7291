// A JIT compilation in two halves, so that several can run concurrently. The first half finds the executable in memory
// or traces the kernel. A trace shows which later requests its executable serves. The second half generates the code;
// it takes nearly all of the time and runs on the thread that began the compilation.

#pragma once

#include "runtime/Device.h"
#include "runtime/MemoryCache.h"

#include <span>

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

} // namespace kiln
