// A device: memory, a stream, and launches of compiled kernels. The code comes from a backend (lowering/Backend.h),
// which several devices may share.

#pragma once

#include "runtime/Executable.h"

#include <memory>

namespace kiln::lowering {
class Backend;
}

namespace kiln {

/// Launches prepared for repeated runs, one after the other.
class LaunchList {
public:
  /// A launch with an argument block (lowering/Abi.h) that is packed and checked for its executable.
  struct Ready {
    std::shared_ptr<const Executable> executable;
    std::vector<uint64_t> block;
  };
  virtual ~LaunchList() = default;
  /// Enqueues all of them, in order.
  virtual void run() = 0;
};

/// The names of devices:
/// - "cpu": the fast pipeline. "cpu:x86-64-v3", "cpu:x86-64-v4": the fast pipeline for that instruction set. "cpu:amx":
///   matmuls on AMX tiles.
/// - "cpu:generic": the reference backend.
/// - "simulator:sm_80" and other architectures: a simulated GPU with checks (runtime/simulator/SimulatorDevice.h).
/// - "cuda:0" and on: NVIDIA's GPUs by the driver's numbers.
///
/// A device has one stream: copies, fills and launches run in the order of the calls, and calls may return earlier.
/// Host memory that a call reads or writes (also the source of an upload) is free for reuse when the call returns.
/// Copies, fills and launches belong to one thread at a time; everything else is thread-safe.
class Device {
public:
  /// Opens a device by name. Throws Error for an unknown name and lists the known ones.
  static std::shared_ptr<Device> open(const std::string &name);
  /// All names that open() knows, even if this machine lacks the device.
  static const std::vector<std::string> &names();
  virtual ~Device() = default;

  virtual const std::string &name() const = 0;
  virtual const Target &target() const = 0;

  /// `bytes` of memory, 256-byte aligned. Throws Error (device) with the size if there is not enough.
  virtual void *allocate(int64_t bytes) = 0;
  virtual void release(void *memory) = 0;
  /// Copies from host to device, from device to host, and within the device, where the two ranges may overlap.
  virtual void upload(void *to, const void *from, int64_t bytes) = 0;
  virtual void download(void *to, const void *from, int64_t bytes) = 0;
  virtual void copy(void *to, const void *from, int64_t bytes) = 0;
  virtual void fillZero(void *memory, int64_t bytes) = 0;

  /// The compiler backend of this device.
  virtual const lowering::Backend &backend() const = 0;
  /// Loads the backend's code as an executable.
  virtual std::shared_ptr<const Executable> load(const std::string &kernel, Signature signature,
                                                 const std::vector<char> &code) = 0;

  /// Runs `grid` programs; an empty grid runs nothing. Workspace regions begin at `workspace`. Throws Error if the
  /// arguments do not match the executable's specialisation, and for an executable of another device.
  void launch(const Executable &executable, Grid grid, const std::vector<Arg> &args, void *workspace = nullptr);
  /// Runs a launch with an argument block (lowering/Abi.h) that is packed and checked for this executable
  /// (runtime/Arguments.h). The block is read before the call returns.
  virtual void launch(const Executable &executable, const uint64_t *block) = 0;
  /// Prepares launches of this device's executables for repeated runs. If the device supports it (CUDA graphs), a run
  /// costs little more than one launch. The device must outlive the list.
  virtual std::unique_ptr<LaunchList> list(std::vector<LaunchList::Ready> launches);
  /// Waits for every launch. Throws Error with the first device_assert() that failed since the last call.
  virtual void synchronize() = 0;
  /// Orders launches with the work of another library's stream (NVIDIA: a `CUstream` of the device's primary context;
  /// null is the default stream): `after(theirs)`, launches, `before(theirs)`. After after(), later work of the device
  /// begins when the stream's present work has ended. After before(), later work of the stream begins when the device's
  /// present work has ended. Neither blocks the host. They do nothing on a device whose launches end before the call
  /// returns.
  virtual void after(void *stream) { (void)stream; }
  virtual void before(void *stream) { (void)stream; }

  /// Host threads that run programs: KILN_THREADS, else all cores. Results never depend on it.
  virtual int threads() const = 0;
  virtual void setThreads(int threads) = 0;
};

} // namespace kiln
