// A machine that holds memory and runs compiled kernels.

#pragma once

#include "dialect/dsl/Plan.h"

#include <memory>

namespace kiln {

class Executable;

/// A device: "cpu" (the fast pipeline), "cpu:generic" (the oracle). Thread-safe but for launches, which belong to one
/// thread at a time.
class Device {
public:
  /// Opens a device by name; throws Error for a name it does not know, with the names there are.
  static std::shared_ptr<Device> open(const std::string &name);
  virtual ~Device() = default;

  virtual const std::string &name() const = 0;
  virtual const Target &target() const = 0;

  /// `bytes` of memory, 256-byte aligned; throws Error (device) with the size when there is none.
  virtual void *allocate(int64_t bytes) = 0;
  virtual void release(void *memory) = 0;
  /// Between this device's memory and the host's, in either direction.
  virtual void copy(void *to, const void *from, int64_t bytes) = 0;
  virtual void fillZero(void *memory, int64_t bytes) = 0;

  /// Runs `grid` programs; an empty grid runs nothing. On a CPU they have run when it returns.
  virtual void launch(const Executable &executable, std::array<int64_t, 3> grid, const std::vector<Arg> &args,
                      void *workspace) = 0;
  /// Waits for every launch; throws Error with the first check that failed since the last call.
  virtual void synchronize() = 0;
  /// An object (see lowering/Abi.h) made ready to run; the key names it in messages.
  virtual std::shared_ptr<const Executable> load(const std::string &kernel, const std::vector<char> &object) = 0;

  /// Threads that run programs: KILN_THREADS, else all cores. Results never depend on it.
  virtual int threads() const = 0;
  virtual void setThreads(int threads) = 0;
};

} // namespace kiln
