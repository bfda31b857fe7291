// NCCL's interface, as far as Kiln uses it (NVIDIA's "NCCL API"). The build needs nothing of NVIDIA's: types are
// declared here, and calls are looked up in the library when ranks train on several GPUs.

#pragma once

#include <string>

struct ncclComm;
struct CUstream_st;

namespace kiln::nccl {

using CommHandle = ncclComm *;
using StreamHandle = CUstream_st *;

/// ncclUniqueId: the common identity of the ranks of a communicator.
struct UniqueId {
  char bytes[128];
};
/// ncclResult_t; the values that Kiln distinguishes.
enum class Result : int { success = 0, inProgress = 7 };
/// ncclDataType_t; data is moved as bytes.
enum class DataType : int { bytes = 0 };

/// The oldest version that Kiln accepts: 2.7.0, the first with ncclSend. It is in ncclGetVersion's coding: thousands
/// and hundreds up to 2.8, ten thousands and hundreds from 2.9 on.
inline constexpr int oldestVersion = 2700;
/// The text `2.7.0` for such a code.
std::string versionText(int code);

/// A call of the library and its name.
template <class... Parameters> struct Call {
  const char *name;
  Result (*function)(Parameters...) = nullptr;
  Result operator()(Parameters... arguments) const { return function(arguments...); }
};

/// NCCL's library, and a Call for each entry of nccl_calls.def. Immutable.
struct Nccl {
#define KILN_NCCL_CALL(member, symbol, ...) Call<__VA_ARGS__> member{#symbol};
#include "models/parallel/nccl_calls.def"
  const char *(*getErrorString)(Result) = nullptr;
  std::string library; // as it was named
  int version = 0;     // its version code

  /// Opens `libnccl.so.2`, or the library that KILN_NCCL names, once, and never closes it. Null if there is none or
  /// KILN_NCCL is empty, with the reason in `why`. Throws Error (device) for a library that KILN_NCCL names and that
  /// cannot be opened, one without a needed call, and one older than oldestVersion.
  static const Nccl *open(std::string &why);
};

} // namespace kiln::nccl
