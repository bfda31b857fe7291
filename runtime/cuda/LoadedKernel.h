// A kernel in a GPU's memory.

#pragma once

#include "runtime/Executable.h"
#include "runtime/cuda/Context.h"
#include "runtime/cuda/PtxText.h"

#include <map>

namespace kiln::cuda {

class LoadedKernel : public Executable {
public:
  /// Loads the code of lowering/Abi.h: the cubin behind the PTX where there is one that the driver takes, else the PTX,
  /// which the driver compiles. Throws Error (device) with the driver's log.
  LoadedKernel(std::shared_ptr<Context> context, const std::string &kernel, Signature signature,
               const std::vector<char> &code);
  ~LoadedKernel() override { context->forget(*this); }

  // These want a Context::Use.

  /// Asks for a launch with an argument block of this kernel's; `captured`: one that becomes a part of a graph.
  void launch(const uint64_t *block, bool captured = false) const;
  /// A graph with captured launches of this kernel is asked for, as launch `number`.
  void noteReplay(int64_t number) const;

private:
  friend class Context;
  void load(const char *cubin);
  std::string argumentText(const uint64_t *block) const;
  std::optional<FailedCheck> readConsole() const;

  const std::shared_ptr<Context> context;
  const PtxText text;
  const LaunchLog::Label label;
  Owned<ModuleHandle> module;
  FunctionHandle function = nullptr;
  int threads = 0; // of a program
  uint32_t dynamicShared = 0;
  Address console = 0; // of a kernel that checks or prints

  // Its launches, guarded by the context: the number of the last one and, of a kernel with a console, the grids of
  // those since it was read, each from a launch's number on, and of those that were captured, which keep their number.
  mutable int64_t lastLaunch = 0;
  mutable std::map<int64_t, Grid> grids, capturedGrids;
};

} // namespace kiln::cuda
