// Captures and replays graphs.

#include "runtime/cuda/Graph.h"

#include "runtime/Arguments.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

namespace kiln::cuda {

static LaunchLog::Label labelOf(const std::vector<LaunchList::Ready> &launches) {
  const auto name = [](const LaunchList::Ready &launch) { return launch.executable->kernel(); };
  return std::make_shared<const std::string>(
      launches.empty() ? "an empty plan"
                       : fmt::format("a plan of {} launches, from kernel '{}' to kernel '{}'", launches.size(),
                                     name(launches.front()), name(launches.back())));
}

static std::vector<LaunchList::Ready> withoutEmpty(std::vector<LaunchList::Ready> launches) {
  std::erase_if(launches, [](const LaunchList::Ready &launch) { return programsOf(launch.block.data()) == 0; });
  return launches;
}

Graph::Graph(std::shared_ptr<Context> shared, std::vector<Ready> all)
    : context(std::move(shared)), launches(withoutEmpty(std::move(all))), label(labelOf(launches)),
      graph(context->connection, context->driver().graphExecDestroy) {
  for (const Ready &launch : launches)
    checkGpuGrid(*launch.executable, launch.block.data());
}

Graph::~Graph() {
  try {
    const Context::Use use(*context);
    graph.reset();
  } catch (const std::exception &error) { // the context is lost, and its graphs with it
    say(std::string("kiln: warning: ") + error.what() + "\n");
  }
}

void Graph::run() {
  if (launches.empty())
    return;
  const Context::Use use(*context);
  if (!std::exchange(hasRun, true))
    return launchEach(/*captured=*/false);
  if (!graph.holds())
    make();
  const int64_t number = context->number(label, launches.front().block.data());
  for (const Ready &launch : launches)
    static_cast<const LoadedKernel &>(*launch.executable).noteReplay(number);
  const Result result = context->driver().graphLaunch(graph.get(), context->stream());
  if (result != Result::success)
    throw context->connection.failure(result, context->driver().graphLaunch.name, "a launch of " + *label);
}

void Graph::launchEach(bool captured) {
  for (const Ready &launch : launches)
    static_cast<const LoadedKernel &>(*launch.executable).launch(launch.block.data(), captured);
}

/// Creates the graph. After an error the stream is unchanged.
void Graph::make() {
  const Driver &driver = context->driver();
  const Connection &connection = context->connection;
  Owned<GraphHandle> captured(connection, driver.graphDestroy);
  connection.call("to capture launches", driver.beginCapture, context->stream(), CaptureMode::threadLocal);
  const auto end = [&] {
    GraphHandle made = nullptr;
    const Result result = driver.endCapture(context->stream(), &made);
    if (made)
      captured.take(made);
    return result;
  };
  try {
    launchEach(/*captured=*/true);
  } catch (...) {
    end();
    throw;
  }
  if (const Result result = end(); result != Result::success)
    throw connection.failure(result, driver.endCapture.name, "the captured launches");
  GraphExecHandle made = nullptr;
  connection.call("a graph of launches", driver.graphInstantiate, &made, captured.get(), 0ull);
  graph.take(made);
}

} // namespace kiln::cuda
