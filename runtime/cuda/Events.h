// A clock of a stream, from CUDA events between launches, and a second stream, which events order with the device's.

#pragma once

#include "runtime/Meters.h"
#include "runtime/SideStream.h"
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

class Side : public SideStream {
public:
  explicit Side(std::shared_ptr<Context> context);
  ~Side() override;

  void ask(const std::function<void(void *stream)> &asks) override;
  void follow() override { context->order(context->stream(), stream.get()); }
  void lead() override { context->order(stream.get(), context->stream()); }
  bool isDone() override;

private:
  const std::shared_ptr<Context> context;
  Owned<StreamHandle> stream;
};

} // namespace kiln::cuda
