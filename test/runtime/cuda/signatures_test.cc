// The functions that Kiln declares itself have the signatures of NVIDIA's cuda.h, and its numbers: checked at compile
// time, if that header exists.

#include "runtime/cuda/Driver.h"

#include <gtest/gtest.h>

#include <cuda.h>

#include <type_traits>

using namespace kiln::cuda;

/// A type with every enumeration as the int that it is passed as, and our struct as theirs.
template <class T> struct Plain {
  using type = T;
};
template <class T>
  requires std::is_enum_v<T>
struct Plain<T> {
  using type = int;
};
template <class T> struct Plain<T *> {
  using type = typename Plain<T>::type *;
};
template <class T> struct Plain<const T> {
  using type = const typename Plain<T>::type;
};
template <> struct Plain<PoolProperties> {
  using type = CUmemPoolProps;
};
template <class R, class... P> struct Plain<R (*)(P...)> {
  using type = typename Plain<R>::type (*)(typename Plain<P>::type...);
};

static_assert(sizeof(PoolProperties) == sizeof(CUmemPoolProps));

// The numbers of enumerators, flags and the launch's parameters.
template <auto ours, auto theirs> constexpr bool isSame = static_cast<int>(ours) == static_cast<int>(theirs);
static_assert(isSame<Result::success, CUDA_SUCCESS> && isSame<Result::invalidValue, CUDA_ERROR_INVALID_VALUE> &&
              isSame<Result::outOfMemory, CUDA_ERROR_OUT_OF_MEMORY> &&
              isSame<Result::deinitialized, CUDA_ERROR_DEINITIALIZED> &&
              isSame<Result::noDevice, CUDA_ERROR_NO_DEVICE> &&
              isSame<Result::invalidImage, CUDA_ERROR_INVALID_IMAGE> &&
              isSame<Result::noBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU> &&
              isSame<Result::invalidPtx, CUDA_ERROR_INVALID_PTX> &&
              isSame<Result::unsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION> &&
              isSame<Result::notFound, CUDA_ERROR_NOT_FOUND> && isSame<Result::notReady, CUDA_ERROR_NOT_READY> &&
              isSame<Result::illegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS>);
static_assert(isSame<Attribute::sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT> &&
              isSame<Attribute::l2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE> &&
              isSame<Attribute::capabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR> &&
              isSame<Attribute::capabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR> &&
              isSame<Attribute::smSharedBytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR> &&
              isSame<Attribute::smRegisters, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR> &&
              isSame<Attribute::ctaSharedBytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN> &&
              isSame<Attribute::memoryPools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED>);
static_assert(isSame<FunctionAttribute::dynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES> &&
              isSame<JitOption::errorLog, CU_JIT_ERROR_LOG_BUFFER> &&
              isSame<JitOption::errorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES> &&
              isSame<JitOption::lineInfo, CU_JIT_GENERATE_LINE_INFO> &&
              isSame<PoolAttribute::releaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD> &&
              isSame<CaptureMode::threadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL> &&
              isSame<streamNonBlocking, CU_STREAM_NON_BLOCKING> && isSame<eventTiming, CU_EVENT_DEFAULT> &&
              isSame<eventWithoutTiming, CU_EVENT_DISABLE_TIMING>);
static_assert(PoolProperties().allocationType == CU_MEM_ALLOCATION_TYPE_PINNED &&
              PoolProperties().locationType == CU_MEM_LOCATION_TYPE_DEVICE);

TEST(CudaInterface, MarksTheParametersOfALaunchAsTheDriverDoes) {
  EXPECT_EQ(launchParameterBuffer, CU_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(launchParameterBytes, CU_LAUNCH_PARAM_BUFFER_SIZE);
}

#undef cuEventElapsedTime // cuda.h names a newer one by this name, with the same parameters
extern "C" CUresult cuEventElapsedTime(float *, CUevent, CUevent);

#define KILN_DRIVER_CALL(member, symbol, ...)                                                                          \
  static_assert(std::is_same_v<Plain<decltype(&symbol)>::type, Plain<Result (*)(__VA_ARGS__)>::type>, #symbol);
#include "runtime/cuda/DriverCalls.def"
