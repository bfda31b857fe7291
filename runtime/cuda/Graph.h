// The launches of a plan as a graph of the driver's, so that asking for all of them costs little more than for one.

#pragma once

#include "runtime/Device.h"
#include "runtime/cuda/LoadedKernel.h"

namespace kiln::cuda {

/// The first run launches one after the other, for many a plan runs once; the second makes the graph.
class Graph : public LaunchList {
public:
  /// `launches` are of kernels of this context.
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
