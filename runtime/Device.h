// A machine that holds memory, makes code and runs compiled kernels.

#pragma once

#include "runtime/Signature.h"

#include <functional>
#include <memory>

namespace mlir {
class ModuleOp;
}

namespace kiln {

class Executable;

/// Receives the text of each stage of a compilation, by the stage's name (see lowering/Pipelines.h).
using StageSink = std::function<void(const std::string &stage, const std::string &text)>;

/// A device: "cpu" (the fast pipeline), "cpu:generic" (the oracle), "cpu:x86-64-v3" and "cpu:x86-64-v4" (the fast
/// pipeline restricted to that instruction set). Thread-safe but for launches, which belong to one thread at a time.
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

  /// Lowers a traced module, which it consumes, to an object (see lowering/Abi.h). From any thread.
  virtual std::vector<char> compile(mlir::ModuleOp module, const StageSink &sink) const = 0;
  /// All that the object depends on besides the module: the pipeline and the processor.
  virtual const std::string &codeKey() const = 0;
  /// An object made ready to run.
  virtual std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                                 const std::vector<char> &object) = 0;

  /// Runs `grid` programs; an empty grid runs nothing. Regions of the workspace begin at `workspace`. On a CPU they
  /// have run when it returns. Throws Error where the arguments are not those that the executable was compiled for.
  virtual void launch(const Executable &executable, Grid grid, const std::vector<Arg> &args,
                      void *workspace = nullptr) = 0;
  /// Waits for every launch; throws Error with the first check that failed since the last call.
  virtual void synchronize() = 0;

  /// Threads that run programs: KILN_THREADS, else all cores. Results never depend on it.
  virtual int threads() const = 0;
  virtual void setThreads(int threads) = 0;
};

} // namespace kiln
