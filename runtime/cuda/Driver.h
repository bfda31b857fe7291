// The CUDA driver's interface, as far as Kiln uses it (NVIDIA's "CUDA Driver API"). Nothing of NVIDIA's is needed to
// build: its types are declared here, and its calls are looked up in the driver's library when a device is opened.

#pragma once

#include <cstddef>
#include <cstdint>
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
using Address = unsigned long long; // of memory of the device

/// CUresult; those that Kiln tells apart.
enum class Result : int {
  success = 0,
  invalidValue = 1,
  outOfMemory = 2,
  deinitialized = 4, // the process is ending
  noDevice = 100,
  noBinaryForGpu = 209,
  invalidPtx = 218,
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
  ctaSharedBytes = 97, // with the consent of cuFuncSetAttribute
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

/// CUmemPoolProps: memory of a device that no other process gets.
struct PoolProperties {
  int allocationType = 1; // CU_MEM_ALLOCATION_TYPE_PINNED
  int handleTypes = 0;
  int locationType = 1; // CU_MEM_LOCATION_TYPE_DEVICE
  int location = 0;     // the device's number
  void *security = nullptr;
  size_t mostBytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

/// The entries of cuLaunchKernel's last parameter: the bytes of all parameters in one buffer, and how many.
inline void *const launchParameterBuffer = reinterpret_cast<void *>(1);
inline void *const launchParameterBytes = reinterpret_cast<void *>(2);

/// A call of the driver and its name.
template <class... Parameters> struct Call {
  const char *name;
  Result (*function)(Parameters...) = nullptr;
  Result operator()(Parameters... arguments) const { return function(arguments...); }
};

/// The driver's library, and a Call for each entry of DriverCalls.def. Immutable; from any thread.
struct Driver {
#define KILN_DRIVER_CALL(member, symbol, ...) Call<__VA_ARGS__> member{#symbol};
#include "runtime/cuda/DriverCalls.def"
  std::string library; // as it was asked for

  /// The driver: `libcuda.so.1`, or what KILN_CUDA_DRIVER names. Opened once, and never closed. Throws Error (device)
  /// when there is none, or it lacks a call.
  static const Driver &open();
  /// `CUDA_ERROR_OUT_OF_MEMORY: out of memory`.
  std::string textOf(Result result) const;

private:
  void lookUp();
};

} // namespace kiln::cuda
