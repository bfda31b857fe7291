// Uploads through page-locked staging memory. A direct copy from pageable memory of the caller would wait for all work
// of the stream, or read that memory after the call has returned.

#pragma once

#include "runtime/cuda/Connection.h"

#include <cstdint>
#include <deque>

namespace kiln::cuda {

/// Belongs to one thread at a time. Before it is destroyed, the stream must have done its copies.
class Staging {
public:
  explicit Staging(const Connection &connection);

  /// Enqueues a copy of `bytes` of host memory. The caller may overwrite that memory when the call returns. It waits
  /// only if more than `pieces` copies are in flight.
  void upload(Address to, const void *from, int64_t bytes, StreamHandle stream);

private:
  void makeRoom();

  static constexpr int pieces = 16;
  static constexpr int64_t pieceBytes = 1 << 20;
  const Connection &connection;
  Owned<void *> memory;                  // allocated by the first upload: `pieces` of `pieceBytes`
  std::deque<Owned<EventHandle>> copied; // for each piece in use, the event after its last copy
  int64_t uploads = 0;                   // number of pieces uploaded
};

} // namespace kiln::cuda
