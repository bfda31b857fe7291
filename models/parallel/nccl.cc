// Opens NCCL's library and looks up its functions.

#include "models/parallel/nccl.h"
#include "dialect/dsl/Types.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <mutex>

namespace kiln::nccl {

std::string versionText(int code) {
  const int major = code < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

/// The functions of an opened library.
static std::unique_ptr<const Nccl> lookUp(void *handle, const std::string &name) {
  auto found = std::make_unique<Nccl>();
  found->library = name;
  const auto find = [&](const char *symbol) {
    void *const function = dlsym(handle, symbol);
    if (!function)
      throw Error(fmt::format("NCCL's library '{}' lacks '{}': it is older than {}, or not NCCL", name, symbol,
                              versionText(oldestVersion)),
                  Fault::device);
    return function;
  };
  const auto take = [&]<class... P>(Call<P...> &call) {
    call.function = reinterpret_cast<Result (*)(P...)>(find(call.name));
  };
  // The version first, so that an error can say that a library is too old.
  take(found->getVersion);
  if (found->getVersion(&found->version) != Result::success || found->version < oldestVersion)
    throw Error(fmt::format("expected NCCL's library '{}' to be of version {} or newer, but it is of version {}", name,
                            versionText(oldestVersion), versionText(found->version)),
                Fault::device);
#define KILN_NCCL_CALL(member, symbol, ...) take(found->member);
#include "models/parallel/nccl_calls.def"
  found->getErrorString = reinterpret_cast<const char *(*)(Result)>(find("ncclGetErrorString"));
  return found;
}

const Nccl *Nccl::open(std::string &why) {
  static std::mutex mutex;
  static auto &all = *new std::map<std::string, std::unique_ptr<const Nccl>>; // by the library's name
  const char *const asked = std::getenv("KILN_NCCL");
  const std::string name = asked ? asked : "libnccl.so.2";
  if (name.empty()) {
    why = "KILN_NCCL is empty";
    return nullptr;
  }
  const std::lock_guard lock(mutex);
  if (const auto found = all.find(name); found != all.end())
    return found->second.get();
  void *const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    why = fmt::format("could not open '{}': {}", name, dlerror());
    if (asked)
      throw Error(fmt::format("expected NCCL's library '{}', which KILN_NCCL names, but {}", name, why), Fault::device);
    return nullptr;
  }
  return all.emplace(name, lookUp(handle, name)).first->second.get();
}

} // namespace kiln::nccl
