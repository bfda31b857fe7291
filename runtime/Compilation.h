// One compilation in its two halves, so that several can be on the way at once. The first half finds the executable in
// memory or traces the kernel; tracing one kernel tells which later requests it serves too. The second half, which
// takes nearly all of the time, makes the code; it is the business of whoever began.

#pragma once

#include "runtime/Device.h"
#include "runtime/MemoryCache.h"

#include <span>

namespace kiln {

/// What an executable is asked for with. Refers to what the asker holds.
struct Request {
  Device &device;
  const Kernel &kernel;
  const std::vector<Arg> &args;
  const std::string &config;
  void *workspace = nullptr;                    // where regions of a workspace begin
  std::span<const Launch::Problem> others = {}; // that it has arguments for besides, of a device that has all at once
};

struct TracedKernel;

/// An executable that is there or being made, and, for the one who has to make it, what to make it from.
struct Begun {
  PendingExecutable executable;
  std::shared_ptr<Source> source;
  std::shared_ptr<TracedKernel> traced; // null unless it is for us to finish
};

/// The executable if it is in memory or being made, else null.
PendingExecutable findCompiled(const Request &request);
/// Finds it, or traces the kernel and enters it among those being made. Throws Error when the arguments do not fit, the
/// kernel has a mistake, or nothing may be compiled any more.
Begun beginCompiling(const Request &request);
/// Makes what beginCompiling() left to us. What goes wrong is thrown to everyone who waits for the executable; returns
/// whether all went well.
bool finishCompiling(const Request &request, Begun &begun);

} // namespace kiln
