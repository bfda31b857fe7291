// A GPU in this process: the driver's primary context, one stream, a memory pool. All devices of one name share it and
// their executables.

#pragma once

#include "runtime/GpuConsole.h"
#include "runtime/cuda/Facts.h"
#include "runtime/cuda/LaunchLog.h"
#include "runtime/cuda/Staging.h"

#include <memory>
#include <mutex>

namespace kiln::cuda {

class LoadedKernel;

class Context {
public:
  /// The context of GPU `number`, existing or new. Throws Error (device).
  static std::shared_ptr<Context> open(int number);
  explicit Context(int number);
  ~Context();

  /// A lock for calls of the driver: one thread at a time, with this context current.
  class Use {
  public:
    explicit Use(Context &context);

  private:
    const std::lock_guard<std::mutex> lock;
  };

  const Connection connection;
  const Gpu gpu;
  const Driver &driver() const { return connection.driver; }
  StreamHandle stream() const { return ownStream.get(); }
  /// Later work of stream `second` begins after all present work of stream `first`. Takes a Use itself.
  void order(StreamHandle first, StreamHandle second);

  // The following functions require a Use.

  Address allocate(int64_t bytes);
  Staging &staging() { return uploads; }
  /// Returns the number of a new launch, from 1, and logs the launch for reports of faults.
  int64_t number(const LaunchLog::Label &label, const uint64_t *grid) {
    log.add(label, grid);
    return ++launches;
  }
  /// Waits for the stream. After a fault of a kernel it throws Error (device) with the launches since the last wait.
  void wait();
  /// Marks that `kernel` was launched and may have output. The next readConsoles() reads its console.
  void expectWords(const LoadedKernel &kernel);
  /// Prints the output of programs. Returns the text of the first failed check, if any.
  std::optional<std::string> readConsoles();
  /// Unloads a kernel after its launches have ended and its console was read. Failures are reported on standard error.
  /// It takes a Use itself.
  void forget(LoadedKernel &kernel) noexcept;

private:
  void readConsole(const LoadedKernel &kernel);

  std::mutex mutex;
  Owned<int> primary;
  ContextHandle handle = nullptr;
  Owned<StreamHandle> ownStream;
  Owned<EventHandle> ordering; // recorded by one stream and waited for by another, one pair at a time
  Owned<PoolHandle> pool;
  Staging uploads;
  LaunchLog log;
  int64_t launches = 0, waited = 0;           // number of launches, and number at the last wait()
  std::vector<const LoadedKernel *> speaking; // kernels with unread consoles, in the order of their first launches
  std::optional<FailedCheck> failed;          // in the launch with the lowest number
};

} // namespace kiln::cuda
