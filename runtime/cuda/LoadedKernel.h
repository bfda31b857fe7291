// A kernel that is loaded on a GPU, and the launches of a plan as a CUDA graph. Launching the graph costs little more
// than one launch.

#pragma once

#include "runtime/Device.h"
#include "runtime/Executable.h"
#include "runtime/cuda/Context.h"
#include "runtime/cuda/PtxText.h"

#include <map>

namespace kiln::cuda {

class LoadedKernel : public Executable {
public:
  /// Loads code in the form of lowering/Abi.h. If the PTX is followed by a cubin that the driver accepts, it loads the
  /// cubin. Otherwise the driver compiles the PTX. Throws Error (device) with the driver's log.
  LoadedKernel(std::shared_ptr<Context> context, const std::string &kernel, Signature signature,
               const std::vector<char> &code);
  ~LoadedKernel() override { context->forget(*this); }

  // The following functions require a Context::Use.

  /// Enqueues a launch with an argument block of this kernel, and returns its number. `captured`: the launch becomes a
  /// part of a graph.
  int64_t launch(const uint64_t *block, bool captured = false) const;
  /// Records that the graph with the captured launch of that number is gone. Its last messages may be unread.
  void noteEnd(int64_t number) const {
    if (console)
      ended.push_back(number);
  }
  /// Records that a graph with launches of this kernel runs as launch `number`.
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
  int threads = 0; // of a CTA
  uint32_t dynamicShared = 0;
  Address console = 0; // of a kernel with checks or prints

  // Launches, guarded by the context. `lastLaunch` is the number of the last one. The others are for a kernel with a
  // console. `grids` has the grids of the launches since it was read, each from a launch number on. `capturedGrids` has
  // those of captured launches, which keep their numbers. `ended` has the numbers of graphs that are gone.
  mutable int64_t lastLaunch = 0;
  mutable std::map<int64_t, Grid> grids, capturedGrids;
  mutable std::vector<int64_t> ended;
};

/// The first run launches one kernel after the other, because many plans run only once. The second run makes the graph.
class Graph : public LaunchList {
public:
  /// The kernels of `launches` belong to this context.
  Graph(std::shared_ptr<Context> context, std::vector<Ready> launches);
  ~Graph() override;
  void run() override;

private:
  void launchEach(bool captures);
  void make();

  const std::shared_ptr<Context> context;
  const std::vector<Ready> launches;
  const LaunchLog::Label label;
  std::vector<std::pair<const LoadedKernel *, int64_t>> captured; // launches and their numbers
  Owned<GraphExecHandle> graph;
  bool hasRun = false;
};

} // namespace kiln::cuda
