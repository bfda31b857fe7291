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
  void follow() override { context->order(context->stream(), stream.get()); }
  void lead() override { context->order(stream.get(), context->stream()); }
  bool isDone() override;

private:
  const std::shared_ptr<Context> context;
  Owned<StreamHandle> stream;
};

} // namespace kiln::cuda
