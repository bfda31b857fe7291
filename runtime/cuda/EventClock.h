// The time of a stream, by events of the driver's between its launches.

#pragma once

#include "runtime/Meters.h"
#include "runtime/cuda/Context.h"

#include <deque>

namespace kiln::cuda {

class EventClock : public DeviceClock {
public:
  explicit EventClock(std::shared_ptr<Context> context) : context(std::move(context)) {}
  ~EventClock() override;

  void mark() override;
  std::vector<double> take() override;
  const char *what() const override { return "the driver's events"; }

private:
  EventHandle record();

  const std::shared_ptr<Context> context;
  std::deque<Owned<EventHandle>> events; // made once; the first of them is where the others are counted from
  size_t used = 0;                       // of them, since the last take()
  double begin = 0;                      // when the first one was reached
};

} // namespace kiln::cuda
