// A ring of staging buffers, each with an event after which it can be reused.

#include "runtime/cuda/Staging.h"

#include <algorithm>
#include <cstring>

namespace kiln::cuda {

Staging::Staging(const Connection &connection)
    : connection(connection), memory(connection, connection.driver.hostRelease) {}

void Staging::makeRoom() {
  const Driver &driver = connection.driver;
  if (!memory.holds()) {
    void *made = nullptr;
    connection.call("page-locked memory for uploads", driver.hostAllocate, &made, size_t{pieces * pieceBytes}, 0u);
    memory.take(made);
  }
  if (copied.size() < pieces) {
    EventHandle event = nullptr;
    connection.call("an event", driver.eventCreate, &event, eventWithoutTiming);
    copied.emplace_back(connection, driver.eventDestroy).take(event);
  } else {
    connection.call("an upload to end", driver.eventSynchronize, copied[uploads % pieces].get());
  }
}

void Staging::upload(Address to, const void *from, int64_t bytes, StreamHandle stream) {
  const Driver &driver = connection.driver;
  for (int64_t done = 0; done < bytes; done += pieceBytes) {
    makeRoom();
    const int64_t piece = uploads % pieces, count = std::min(pieceBytes, bytes - done);
    char *const place = static_cast<char *>(memory.get()) + piece * pieceBytes;
    std::memcpy(place, static_cast<const char *>(from) + done, static_cast<size_t>(count));
    connection.call("an upload", driver.copyToDevice, to + static_cast<Address>(done), static_cast<const void *>(place),
                    static_cast<size_t>(count), stream);
    connection.call("an event", driver.eventRecord, copied[piece].get(), stream);
    ++uploads;
  }
}

} // namespace kiln::cuda
