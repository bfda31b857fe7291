// The functions that Kiln declares itself have the signatures of NVIDIA's cuda.h: checked at compile time, if that
// header exists.

#include "runtime/cuda/Driver.h"

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

#undef cuEventElapsedTime // cuda.h names a newer one by this name, with the same parameters
extern "C" CUresult cuEventElapsedTime(float *, CUevent, CUevent);

#define KILN_DRIVER_CALL(member, symbol, ...)                                                                          \
  static_assert(std::is_same_v<Plain<decltype(&symbol)>::type, Plain<Result (*)(__VA_ARGS__)>::type>, #symbol);
#include "runtime/cuda/DriverCalls.def"
