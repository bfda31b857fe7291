// The driver's streams, events and graphs.

#include "test/runtime/cuda/stub/state.h"

#include <chrono>
#include <thread>

using namespace kiln::stub;

/// The operations of graphs and of executable graphs, by handle.
static auto &graphs = *new std::map<const void *, std::vector<Operation>>;
namespace {
/// How often an event was recorded, where last, how often it was reached, and when.
struct Event {
  int64_t recorded = 0, reached = 0;
  const void *stream = nullptr;
  std::chrono::steady_clock::time_point time = {};
};
} // namespace
static auto &events = *new std::map<const void *, Event>;

Result cuStreamCreate(StreamHandle *stream, unsigned flags) {
  return call(__func__, [&, name = __func__](State &all) {
    *stream = all.make<StreamHandle>("stream");
    all.note(name, {flags});
    all.homes[*stream] = current();
    all.streams.emplace(*stream, static_cast<int>(all.streams.size()));
    return success;
  });
}

Result cuStreamDestroy_v2(StreamHandle stream) {
  return call(__func__, [&](State &all) {
    all.drain(stream);
    all.queues.erase(stream);
    return all.destroy(stream, "stream");
  });
}

Result cuStreamSynchronize(StreamHandle stream) {
  return call(__func__, [&](State &all) {
    if (!all.has(stream, "stream"))
      return invalidHandle;
    return all.capture ? Result(900) : all.drain(stream); // nobody waits for a stream that is captured
  });
}

Result cuStreamQuery(StreamHandle stream) {
  return call(__func__, [&](State &all) { return all.has(stream, "stream") ? all.advance(stream) : invalidHandle; });
}

// --- Events ----------------------------------------------------------------------------------------------------------

Result cuEventCreate(EventHandle *event, unsigned flags) {
  return call(__func__, [&, name = __func__](State &all) {
    all.note(name, {flags});
    *event = all.make<EventHandle>("event");
    events[*event] = {};
    return success;
  });
}

Result cuEventDestroy_v2(EventHandle event) {
  return call(__func__, [&](State &all) {
    events.erase(event);
    return all.destroy(event, "event");
  });
}

Result cuEventRecord(EventHandle event, StreamHandle stream) {
  return call(__func__, [&](State &all) {
    if (!all.has(event, "event"))
      return invalidHandle;
    events[event].stream = stream;
    return all.ask(stream, "cuEventRecord", [event, number = ++events[event].recorded] {
      if (const auto found = events.find(event); found != events.end()) { // else nobody can ask any more
        found->second.reached = number;
        found->second.time = std::chrono::steady_clock::now();
      }
      return success;
    });
  });
}

/// Executes the operations before the recording of `event` for the time `number`.
static Result reach(State &all, EventHandle event, const void *stream, int64_t number) {
  const auto isThere = [=] { return !events.contains(event) || events[event].reached >= number; };
  return isThere() ? success : all.advance(stream, isThere);
}

Result cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  return call(__func__, [&](State &all) {
    if (!all.has(stream, "stream") || !all.has(event, "event"))
      return invalidHandle;
    return all.ask(stream, "cuStreamWaitEvent",
                   [&all, event, from = events[event].stream, number = events[event].recorded] {
                     return reach(all, event, from, number);
                   });
  });
}

Result cuEventSynchronize(EventHandle event) {
  return call(__func__, [&](State &all) {
    if (!all.has(event, "event"))
      return invalidHandle;
    Result result;
    while ((result = reach(all, event, events[event].stream, events[event].recorded)) == notReady)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    return result;
  });
}

Result cuEventElapsedTime(float *milliseconds, EventHandle begin, EventHandle end) {
  return call(__func__, [&](State &) {
    for (const EventHandle event : {begin, end})
      if (!events.contains(event) || events[event].reached == 0)
        return notReady;
    *milliseconds = std::chrono::duration<float, std::milli>(events[end].time - events[begin].time).count();
    return success;
  });
}

// --- Graphs ----------------------------------------------------------------------------------------------------------

static auto &captured = *new std::vector<Operation>;

Result cuStreamBeginCapture_v2(StreamHandle, CaptureMode mode) {
  return call(__func__, [&, name = __func__](State &all) {
    all.note(name, {static_cast<uint64_t>(mode)});
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

Result cuGraphInstantiateWithFlags(GraphExecHandle *executable, GraphHandle graph, unsigned long long flags) {
  return call(__func__, [&, name = __func__](State &all) {
    all.note(name, {flags});
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

Result cuGraphLaunch(GraphExecHandle executable, StreamHandle stream) {
  return call(__func__, [&](State &all) {
    if (!all.has(executable, "executable graph"))
      return invalidHandle;
    return all.ask(stream, "cuGraphLaunch", [operations = graphs[executable]] {
      for (const Operation &operation : operations)
        if (const Result result = operation(); result != success)
          return result;
      return success;
    });
  });
}
