// The part of NVIDIA's "CUDA Driver API" that Kiln uses, its calls with errors, and RAII owners of its objects.
// Building needs nothing from NVIDIA: types are declared here, and calls are looked up in the driver's library when a
// device is opened.

#pragma once

#include "dialect/dsl/Types.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUmemPoolHandle_st;

namespace kiln::cuda {

using ContextHandle = CUctx_st *;
using StreamHandle = CUstream_st *;
using EventHandle = CUevent_st *;
using ModuleHandle = CUmod_st *;
using FunctionHandle = CUfunc_st *;
using GraphHandle = CUgraph_st *;
using GraphExecHandle = CUgraphExec_st *;
using PoolHandle = CUmemPoolHandle_st *;
using Address = unsigned long long; // in device memory

/// CUresult: the values that Kiln distinguishes.
enum class Result : int {
  success = 0,
  invalidValue = 1,
  outOfMemory = 2,
  deinitialized = 4, // the process is ending
  noDevice = 100,
  invalidImage = 200,
  noBinaryForGpu = 209,
  invalidPtx = 218,
  unsupportedPtxVersion = 222,
  notFound = 500,
  notReady = 600,
  illegalAddress = 700,
};
/// CUdevice_attribute.
enum class Attribute : int {
  sms = 16,
  l2Bytes = 38,
  capabilityMajor = 75,
  capabilityMinor = 76,
  smSharedBytes = 81,
  smRegisters = 82,
  ctaSharedBytes = 97, // requires cuFuncSetAttribute
  memoryPools = 115,
};
/// CUfunction_attribute.
enum class FunctionAttribute : int { dynamicSharedBytes = 8 };
/// CUjit_option.
enum class JitOption : int { errorLog = 5, errorLogBytes = 6, lineInfo = 13 };
/// CUmemPool_attribute.
enum class PoolAttribute : int { releaseThreshold = 4 };
/// CUstreamCaptureMode.
enum class CaptureMode : int { threadLocal = 1 };

inline constexpr unsigned streamNonBlocking = 1, eventTiming = 0, eventWithoutTiming = 2;

/// CUmemPoolProps: device memory that is not shared with other processes.
struct PoolProperties {
  int allocationType = 1; // CU_MEM_ALLOCATION_TYPE_PINNED
  int handleTypes = 0;
  int locationType = 1; // CU_MEM_LOCATION_TYPE_DEVICE
  int location = 0;     // the device's number
  void *security = nullptr;
  size_t maxBytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

/// The entries of cuLaunchKernel's last parameter: one buffer with all parameters, and its size.
inline void *const launchParameterBuffer = reinterpret_cast<void *>(1);
inline void *const launchParameterBytes = reinterpret_cast<void *>(2);

/// A driver call and its name.
template <class... Parameters> struct Call {
  const char *name;
  Result (*function)(Parameters...) = nullptr;
  Result operator()(Parameters... arguments) const { return function(arguments...); }
};

/// The driver's library, with a Call for each entry of DriverCalls.def. Immutable and thread-safe.
struct Driver {
#define KILN_DRIVER_CALL(member, symbol, ...) Call<__VA_ARGS__> member{#symbol};
#include "runtime/cuda/DriverCalls.def"
  std::string library; // as requested

  /// The driver: `libcuda.so.1`, or the library that KILN_CUDA_DRIVER names. It is loaded once and stays loaded. Throws
  /// Error (device) if there is none or a call is missing.
  static const Driver &open();
  /// `CUDA_ERROR_OUT_OF_MEMORY: out of memory`.
  std::string errorText(Result result) const;

private:
  void lookUp();
};

// --- Calls with errors ----------------------------------------------------------------------------------------------

class Connection {
public:
  Connection(const Driver &driver, std::string device) : driver(driver), device(std::move(device)) {}

  const Driver &driver;
  const std::string device; // "cuda:0"

  /// Calls the driver to get `wanted`, such as "a stream". Throws failure() unless it succeeds.
  template <class... P, class... A> void call(const char *wanted, const Call<P...> &call, A... arguments) const {
    if (const Result result = call(arguments...); result != Result::success)
      throw failure(result, call.name, wanted);
  }
  /// An Error (device): `device 'cuda:0': expected WANTED, but CALL returned CUDA_ERROR_…: …`.
  Error failure(Result result, const char *call, const std::string &wanted) const;
  /// Calls the driver to release something. A failure is reported on standard error, except after a fault of a kernel,
  /// when every call fails, and while the process ends.
  template <class... P, class... A> void giveBack(const Call<P...> &call, A... arguments) const noexcept {
    if (const Result result = call(arguments...); result != Result::success)
      sayNotGivenBack(result, call.name);
  }

private:
  void sayNotGivenBack(Result result, const char *call) const noexcept;
  mutable std::atomic<bool> faulty = false; // a kernel has put the context into an error state
};

/// An object of the driver, or nothing.
template <class Handle> class Owned {
public:
  Owned(const Connection &connection, const Call<Handle> &destroy) : connection(connection), destroy(destroy) {}
  Owned(const Owned &) = delete;
  ~Owned() { reset(); }

  void take(Handle made) {
    reset();
    handle = made;
  }
  void reset() noexcept {
    if (handle)
      connection.giveBack(destroy, *handle);
    handle.reset();
  }
  bool holds() const { return handle.has_value(); }
  Handle get() const { return *handle; }

private:
  const Connection &connection;
  const Call<Handle> &destroy;
  std::optional<Handle> handle;
};

} // namespace kiln::cuda
