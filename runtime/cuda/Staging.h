// The way of an upload: through page-locked memory of our own. A copy from memory of the caller's would either wait for
// all that the stream has to do before, or read that memory after the call has returned.

#pragma once

#include "runtime/cuda/Connection.h"

#include <cstdint>
#include <deque>

namespace kiln::cuda {

/// Belongs to one thread at a time. The stream has done its copies when this is destroyed.
class Staging {
public:
  explicit Staging(const Connection &connection);

  /// Asks the stream to copy `bytes` of the host's memory, which may be overwritten when this returns. Waits only where
  /// more than `pieces` copies are under way.
  void upload(Address to, const void *from, int64_t bytes, StreamHandle stream);

private:
  void makeRoom();

  static constexpr int pieces = 16;
  static constexpr int64_t pieceBytes = 1 << 20;
  const Connection &connection;
  Owned<void *> memory;                  // made by the first upload, `pieces` of `pieceBytes`
  std::deque<Owned<EventHandle>> copied; // for each piece that was used, whether its last copy is done
  int64_t uploads = 0;                   // of pieces
};

} // namespace kiln::cuda
