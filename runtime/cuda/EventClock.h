// A clock of a stream, from CUDA events between launches.

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
  std::deque<Owned<EventHandle>> events; // created once; times count from the first one
  size_t used = 0;                       // number of events used since the last take()
  double begin = 0;                      // time of the first event
};

} // namespace kiln::cuda
