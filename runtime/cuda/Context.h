// A GPU in this process: the driver's primary context, one stream, a memory pool. All devices of one name share it and
// their executables.

#pragma once

#include "dialect/dsl/Plan.h"
#include "lowering/gpu/GpuTarget.h"
#include "runtime/Console.h"
#include "runtime/Streams.h"
#include "runtime/cuda/Driver.h"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace kiln::cuda {

/// The facts about a GPU, and the code that it runs.
struct Gpu {
  std::string name;                               // "NVIDIA H200"
  int number = 0;                                 // the device number of the driver
  int capability = 0;                             // compute capability times ten
  const lowering::gpu::GpuTarget *code = nullptr; // the code that it runs
  GpuFacts facts;                                 // with the architecture of `code`

  /// Whether `code` is for exactly this compute capability, so that the GPU accepts a cubin.
  bool isExact() const { return code->capability == capability; }
};

/// The number of GPUs. Throws Error (device).
int countGpus(const Connection &connection);

/// The GPU with this number. Throws Error (device) if there is none, or if it is older than all targets of Kiln.
Gpu readGpu(const Connection &connection, int number);

/// The target for a GPU of this compute capability times ten: its own, otherwise the newest older one that it runs.
/// Architecture-specific code, such as sm_90a, runs on no other capability. Null if there is none.
const lowering::gpu::GpuTarget *codeFor(int capability);

// --- Parts of a context ---------------------------------------------------------------------------------------------

/// Uploads through page-locked staging memory. A direct copy from the caller's pageable memory would wait for all work
/// of the stream, or read the memory after the call has returned. Belongs to one thread at a time. Before it is
/// destroyed, the stream must have done its copies.
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

/// The launches since the last wait. A fault of a kernel appears only at a wait, and the driver does not name the
/// launch. Belongs to one thread at a time.
class LaunchLog {
public:
  /// The text of a launch without its grid: "kernel 'softmax' at kernels/softmax.cc:20".
  using Label = std::shared_ptr<const std::string>;

  void add(const Label &label, const uint64_t *grid) {
    last[count++ % last.size()] = {label, {grid[0], grid[1], grid[2]}};
  }
  void clear() { count = 0; }
  bool empty() const { return count == 0; }
  /// The last launches, the latest first, and the number of earlier ones.
  std::string text() const;

private:
  struct Entry {
    Label label;
    std::array<uint64_t, 3> grid;
  };
  std::array<Entry, 16> last;
  uint64_t count = 0;
};

// --- The context ----------------------------------------------------------------------------------------------------

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
  /// For destructors: calls `release` with a Use. If the context is lost, its objects are, too, which is reported on
  /// standard error.
  template <class Release> void giveBack(Release release) noexcept {
    try {
      const Use use(*this);
      release();
    } catch (const std::exception &error) {
      say(std::string("kiln: warning: ") + error.what() + "\n");
    }
  }

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
