// A second stream of a GPU, ordered with the device's stream by events.

#pragma once

#include "runtime/SideStream.h"
#include "runtime/cuda/Context.h"

namespace kiln::cuda {

class Side : public SideStream {
public:
  explicit Side(std::shared_ptr<Context> context);
  ~Side() override;

  void ask(const std::function<void(void *stream)> &asks) override;
  void follow() override { order(context->stream(), before.get(), stream.get()); }
  void lead() override { order(stream.get(), after.get(), context->stream()); }
  bool isDone() override;

private:
  /// `second` waits for all present work of `first`.
  void order(StreamHandle first, EventHandle event, StreamHandle second);

  const std::shared_ptr<Context> context;
  Owned<StreamHandle> stream;
  Owned<EventHandle> before, after;
};

} // namespace kiln::cuda
