// The launches of a plan as a CUDA graph: launching all of them costs little more than one launch.

#pragma once

#include "runtime/Device.h"
#include "runtime/cuda/LoadedKernel.h"

namespace kiln::cuda {

/// The first run launches one kernel after the other, because many plans run only once. The second run makes the graph.
class Graph : public LaunchList {
public:
  /// The kernels of `launches` belong to this context.
  Graph(std::shared_ptr<Context> context, std::vector<Ready> launches);
  ~Graph() override;
  void run() override;

private:
  void launchEach(bool captured);
  void make();

  const std::shared_ptr<Context> context;
  const std::vector<Ready> launches;
  const LaunchLog::Label label;
  Owned<GraphExecHandle> graph;
  bool hasRun = false;
};

} // namespace kiln::cuda
