// The driver's streams, events and graphs.

#include "test/runtime/cuda/stub/state.h"

#include <chrono>

using namespace kiln::stub;

/// What is known of a graph or of its executable form, by handle.
static auto &graphs = *new std::map<const void *, std::vector<Operation>>;
/// When events were reached, by handle.
static auto &reached = *new std::map<const void *, std::chrono::steady_clock::time_point>;

Result cuStreamCreate(StreamHandle *stream, unsigned) {
  return call(__func__, [&](State &all) {
    *stream = all.make<StreamHandle>("stream");
    return success;
  });
}

Result cuStreamDestroy_v2(StreamHandle stream) {
  return call(__func__, [&](State &all) {
    all.drain();
    return all.destroy(stream, "stream");
  });
}

Result cuStreamSynchronize(StreamHandle stream) {
  return call(__func__, [&](State &all) {
    if (!all.has(stream, "stream"))
      return invalidHandle;
    return all.capture ? Result(900) : all.drain(); // nobody waits for a stream that is captured
  });
}

// --- Events ----------------------------------------------------------------------------------------------------------

Result cuEventCreate(EventHandle *event, unsigned) {
  return call(__func__, [&](State &all) {
    *event = all.make<EventHandle>("event");
    return success;
  });
}

Result cuEventDestroy_v2(EventHandle event) {
  return call(__func__, [&](State &all) {
    reached.erase(event);
    return all.destroy(event, "event");
  });
}

Result cuEventRecord(EventHandle event, StreamHandle) {
  return call(__func__, [&](State &all) {
    if (!all.has(event, "event"))
      return invalidHandle;
    return all.ask([event] {
      reached[event] = std::chrono::steady_clock::now();
      return success;
    });
  });
}

Result cuEventSynchronize(EventHandle event) {
  return call(__func__, [&](State &all) { return all.has(event, "event") ? all.drain() : invalidHandle; });
}

Result cuEventElapsedTime(float *milliseconds, EventHandle begin, EventHandle end) {
  return call(__func__, [&](State &) {
    if (!reached.contains(begin) || !reached.contains(end))
      return Result(600); // not ready
    *milliseconds = std::chrono::duration<float, std::milli>(reached[end] - reached[begin]).count();
    return success;
  });
}

// --- Graphs ----------------------------------------------------------------------------------------------------------

static auto &captured = *new std::vector<Operation>;

Result cuStreamBeginCapture_v2(StreamHandle, CaptureMode) {
  return call(__func__, [&](State &all) {
    captured.clear();
    all.capture = &captured;
    return success;
  });
}

Result cuStreamEndCapture(StreamHandle, GraphHandle *graph) {
  return call(__func__, [&](State &all) {
    if (!all.capture)
      return invalidValue;
    all.capture = nullptr;
    *graph = all.make<GraphHandle>("graph");
    graphs[*graph] = std::move(captured);
    return success;
  });
}

Result cuGraphDestroy(GraphHandle graph) {
  return call(__func__, [&](State &all) {
    graphs.erase(graph);
    return all.destroy(graph, "graph");
  });
}

Result cuGraphInstantiateWithFlags(GraphExecHandle *executable, GraphHandle graph, unsigned long long) {
  return call(__func__, [&](State &all) {
    if (!all.has(graph, "graph"))
      return invalidHandle;
    *executable = all.make<GraphExecHandle>("executable graph");
    graphs[*executable] = graphs[graph];
    return success;
  });
}

Result cuGraphExecDestroy(GraphExecHandle executable) {
  return call(__func__, [&](State &all) {
    graphs.erase(executable);
    return all.destroy(executable, "executable graph");
  });
}

Result cuGraphLaunch(GraphExecHandle executable, StreamHandle) {
  return call(__func__, [&](State &all) {
    if (!all.has(executable, "executable graph"))
      return invalidHandle;
    for (const Operation &operation : graphs[executable])
      all.ask(operation);
    return success;
  });
}
