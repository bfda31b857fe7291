// The functions that Kiln declares itself have the signatures of NVIDIA's nccl.h, and constants their values: checked
// at compile time, if that header exists.

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <type_traits>

// Ours, without the functions of the library itself.
#include "models/parallel/nccl.h"

using namespace kiln::nccl;

/// A type with every enumeration as the int that it is passed as, and our structures as theirs.
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
template <> struct Plain<UniqueId> {
  using type = ncclUniqueId;
};
template <class R, class... P> struct Plain<R (*)(P...)> {
  using type = typename Plain<R>::type (*)(typename Plain<P>::type...);
};

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && alignof(UniqueId) == alignof(ncclUniqueId));
static_assert(static_cast<int>(Result::success) == ncclSuccess);
static_assert(static_cast<int>(Result::inProgress) == ncclInProgress);
static_assert(static_cast<int>(DataType::bytes) == ncclInt8);
static_assert(oldestVersion == NCCL_VERSION(2, 7, 0));

#define KILN_NCCL_CALL(member, symbol, ...)                                                                            \
  static_assert(std::is_same_v<Plain<decltype(&symbol)>::type, Plain<Result (*)(__VA_ARGS__)>::type>, #symbol);
#include "models/parallel/nccl_calls.def"
