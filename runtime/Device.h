// A machine that holds memory and runs compiled kernels: the run half of a target. What makes its code is a backend
// (lowering/Backend.h), which several devices may share.

#pragma once

#include "runtime/Executable.h"

#include <memory>

namespace kiln::lowering {
class Backend;
}

namespace kiln {

/// Launches that are asked for again and again, one after the other.
class LaunchList {
public:
  /// A launch with the argument block of lowering/Abi.h that somebody has made and checked for the executable.
  struct Ready {
    std::shared_ptr<const Executable> executable;
    std::vector<uint64_t> block;
  };
  virtual ~LaunchList() = default;
  /// Asks for all of them, in order.
  virtual void run() = 0;
};

/// A device: "cpu" (the fast pipeline), "cpu:generic" (the oracle), "cpu:x86-64-v3" and "cpu:x86-64-v4" (the fast
/// pipeline restricted to that instruction set); "simulator:sm_80" and other architectures (a GPU that is simulated and
/// checked, see runtime/simulator/SimulatorDevice.h); "cuda:0" and on (NVIDIA's GPUs, by the driver's numbers).
///
/// Copies, fills and launches happen in the order they were asked for, each after the one before; whoever asks may go
/// on meanwhile. What they read and write on the host (the source of an upload too) is done with when the call returns.
/// Thread-safe but for these, which belong to one thread at a time.
class Device {
public:
  /// Opens a device by name; throws Error for a name it does not know, with the names there are.
  static std::shared_ptr<Device> open(const std::string &name);
  /// The names that open() takes, whatever this machine has.
  static const std::vector<std::string> &names();
  virtual ~Device() = default;

  virtual const std::string &name() const = 0;
  virtual const Target &target() const = 0;

  /// `bytes` of memory, 256-byte aligned; throws Error (device) with the size when there is none.
  virtual void *allocate(int64_t bytes) = 0;
  virtual void release(void *memory) = 0;
  /// Copies from the host's memory to the device's, from the device's to the host's, and within the device's, where
  /// the two ranges may overlap.
  virtual void upload(void *to, const void *from, int64_t bytes) = 0;
  virtual void download(void *to, const void *from, int64_t bytes) = 0;
  virtual void copy(void *to, const void *from, int64_t bytes) = 0;
  virtual void fillZero(void *memory, int64_t bytes) = 0;

  /// What makes code for this device.
  virtual const lowering::Backend &backend() const = 0;
  /// The backend's code made ready to run.
  virtual std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                                 const std::vector<char> &code) = 0;

  /// Runs `grid` programs; an empty grid runs nothing. Regions of the workspace begin at `workspace`. Throws Error
  /// where the arguments are not those that the executable was compiled for, and for an executable of another device.
  void launch(const Executable &executable, Grid grid, const std::vector<Arg> &args, void *workspace = nullptr);
  /// The same with the argument block of lowering/Abi.h that somebody has made and checked for this executable
  /// (runtime/Arguments.h); it is read before the call returns.
  virtual void launch(const Executable &executable, const uint64_t *block) = 0;
  /// Launches of this device's executables made ready to be asked for many times: where the device has a way, all
  /// together cost little more than one. The device must outlive them.
  virtual std::unique_ptr<LaunchList> list(std::vector<LaunchList::Ready> launches);
  /// Waits for every launch; throws Error with the first check that failed since the last call.
  virtual void synchronize() = 0;
  /// Orders launches with the work of a stream that another library made (NVIDIA: a `CUstream` of the device's primary
  /// context; null is the default stream): `after(theirs)`, launches, `before(theirs)`. What the device is asked for
  /// after a call of after() begins when the stream's work so far has ended; what the stream is asked for after a call
  /// of before() begins when the device's work so far has ended. Neither waits on the host. A device that runs a launch
  /// when it is called has nothing to do.
  virtual void after(void *stream) { (void)stream; }
  virtual void before(void *stream) { (void)stream; }

  /// Threads of the host that run programs: KILN_THREADS, else all cores. Results never depend on it.
  virtual int threads() const = 0;
  virtual void setThreads(int threads) = 0;
};

} // namespace kiln
