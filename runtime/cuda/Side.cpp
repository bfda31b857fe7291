// Events recorded on one stream for another stream to wait for.

#include "runtime/cuda/Side.h"

#include "runtime/Device.h"
#include "runtime/Streams.h"

namespace kiln {

std::unique_ptr<SideStream> sideStreamOf(Device &device) {
  auto *const streamed = dynamic_cast<SideStreamed *>(&device);
  return streamed ? streamed->sideStream() : nullptr;
}

namespace cuda {

Side::Side(std::shared_ptr<Context> given)
    : context(std::move(given)), stream(context->connection, context->driver().streamDestroy) {
  const Context::Use use(*context);
  const Connection &connection = context->connection;
  StreamHandle made = nullptr;
  connection.call("a second stream", context->driver().streamCreate, &made, streamNonBlocking);
  stream.take(made);
}

Side::~Side() {
  try {
    const Context::Use use(*context);
    stream.reset();
  } catch (const std::exception &error) { // the context is lost, and its resources with it
    say(std::string("kiln: warning: ") + error.what() + "\n");
  }
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

} // namespace cuda
} // namespace kiln
