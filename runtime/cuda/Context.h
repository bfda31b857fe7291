// A GPU as this process uses it: the driver's primary context, one stream, a pool of memory. All devices of one name
// share it, as they share executables.

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
  /// The context of GPU `number`: the one there is, or a new one. Throws Error (device).
  static std::shared_ptr<Context> open(int number);
  explicit Context(int number);
  ~Context();

  /// Held while the driver is called: one thread at a time, with the context as its current one.
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
  /// What `second` is asked for from now on begins after all that `first` was asked for so far. Takes a Use itself.
  void order(StreamHandle first, StreamHandle second);

  // What follows wants a Use.

  Address allocate(int64_t bytes);
  Staging &staging() { return uploads; }
  /// Numbers the launch, from 1, and notes it for the case of a fault.
  int64_t number(const LaunchLog::Label &label, const uint64_t *grid) {
    log.add(label, grid);
    return ++launches;
  }
  /// Waits for the stream. Throws Error (device), with the launches since the last wait, for a fault of one of them.
  void wait();
  /// `kernel` was launched and may have something to say; its console is read at the next readConsoles().
  void expectWords(const LoadedKernel &kernel);
  /// Prints what programs have printed; the text of the first check that failed, when there is one.
  std::optional<std::string> readConsoles();
  /// Unloads a kernel, after its launches have ended and its console was read. What goes wrong is said on standard
  /// error. Takes a Use itself.
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
  int64_t launches = 0, waited = 0;           // so many, and so many of them before the last wait()
  std::vector<const LoadedKernel *> speaking; // in the order of their first launches since they were read
  std::optional<FailedCheck> failed;          // of the launch with the lowest number
};

} // namespace kiln::cuda
