// Records events, and measures times between them. Times are relative to an event recorded at the first mark, so that
// the driver's floats, in milliseconds, stay precise.

#include "runtime/cuda/EventClock.h"

#include "runtime/Streams.h"

namespace kiln::cuda {

EventClock::~EventClock() {
  try {
    const Context::Use use(*context);
    events.clear();
  } catch (const std::exception &error) { // the context is lost, and its events with it
    say(std::string("kiln: warning: ") + error.what() + "\n");
  }
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

} // namespace kiln::cuda
