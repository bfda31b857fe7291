// Records events, and measures times between them. Times are relative to an event recorded at the first mark, so that
// the driver's floats, in milliseconds, stay precise.

#include "runtime/cuda/Events.h"

namespace kiln::cuda {

EventClock::~EventClock() {
  context->giveBack([this] { events.clear(); });
}

/// Records the next event on the stream. Requires a Context::Use.
EventHandle EventClock::record() {
  const Connection &connection = context->connection;
  if (used == events.size()) {
    EventHandle made = nullptr;
    connection.call("an event", context->driver().eventCreate, &made, eventTiming);
    events.emplace_back(connection, context->driver().eventDestroy).take(made);
  }
  const EventHandle event = events[used++].get();
  connection.call("an event", context->driver().eventRecord, event, context->stream());
  return event;
}

void EventClock::mark() {
  const Context::Use use(*context);
  if (used == 0) {
    context->connection.call("an event to be reached", context->driver().eventSynchronize, record());
    begin = secondsNow();
  }
  record();
}

std::vector<double> EventClock::take() {
  const Context::Use use(*context);
  std::vector<double> times;
  if (used > 0)
    context->connection.call("an event to be reached", context->driver().eventSynchronize, events[used - 1].get());
  for (size_t i = 1; i < used; ++i) {
    float milliseconds = 0;
    context->connection.call("the time between events", context->driver().eventElapsedTime, &milliseconds,
                             events.front().get(), events[i].get());
    times.push_back(begin + milliseconds / 1e3);
  }
  used = 0;
  return times;
}

// --- A second stream ------------------------------------------------------------------------------------------------

Side::Side(std::shared_ptr<Context> given)
    : context(std::move(given)), stream(context->connection, context->driver().streamDestroy) {
  const Context::Use use(*context);
  const Connection &connection = context->connection;
  StreamHandle made = nullptr;
  connection.call("a second stream", context->driver().streamCreate, &made, streamNonBlocking);
  stream.take(made);
}

Side::~Side() {
  context->giveBack([this] { stream.reset(); });
}

void Side::ask(const std::function<void(void *stream)> &asks) {
  const Context::Use use(*context);
  asks(stream.get());
}

bool Side::isDone() {
  const Context::Use use(*context);
  const Result result = context->driver().streamQuery(stream.get());
  if (result != Result::success && result != Result::notReady)
    throw context->connection.failure(result, context->driver().streamQuery.name, "a second stream to go well");
  return result == Result::success;
}

} // namespace kiln::cuda
