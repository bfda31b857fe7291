// NCCL's interface, as far as Kiln uses it (NVIDIA's "NCCL API"). Nothing of NVIDIA's is needed to build: its types are
// declared here, and its calls are looked up in its library when ranks train on several GPUs.

#pragma once

#include <cstddef>
#include <string>

struct ncclComm;
struct CUstream_st;

namespace kiln::nccl {

using CommHandle = ncclComm *;
using StreamHandle = CUstream_st *;

/// ncclUniqueId: what ranks of one communicator have in common.
struct UniqueId {
  char bytes[128];
};
/// ncclResult_t; those that Kiln tells apart.
enum class Result : int { success = 0, inProgress = 7 };
/// ncclDataType_t; what is moved is bytes.
enum class DataType : int { bytes = 0 };

/// The oldest version that Kiln takes, 2.7.0, the first with ncclSend, as ncclGetVersion codes it: thousands and
/// hundreds up to 2.8, ten thousands and hundreds from 2.9 on.
inline constexpr int oldestVersion = 2700;
/// `2.7.0` of such a code.
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
  std::string library; // as it was asked for
  int version = 0;     // its code

  /// `libnccl.so.2`, or what KILN_NCCL names. Opened once, and never closed. Null where there is none, with the reason
  /// in `why`; also where KILN_NCCL is empty. Throws Error (device) for a library that KILN_NCCL names and that cannot
  /// be opened, one that lacks a call, and one older than oldestVersion.
  static const Nccl *open(std::string &why);
};

} // namespace kiln::nccl
