// Opens the driver's library, looks up its functions, and has error messages of their results.

#include "runtime/cuda/Driver.h"

#include "dialect/dsl/Types.h"
#include "runtime/Streams.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <mutex>

namespace kiln::cuda {

void Driver::lookUp() {
  void *const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Error(
        fmt::format("expected the CUDA driver's library '{}' (KILN_CUDA_DRIVER names another) for a GPU, but could "
                    "not open it: {}",
                    library, dlerror()),
        Fault::device);
  const auto find = [&]<class... P>(Call<P...> &call) {
    call.function = reinterpret_cast<Result (*)(P...)>(dlsym(handle, call.name));
    if (!call.function)
      throw Error(
          fmt::format("the CUDA driver's library '{}' lacks '{}': it is too old, or not a driver", library, call.name),
          Fault::device);
  };
#define KILN_DRIVER_CALL(member, symbol, ...) find(member);
#include "runtime/cuda/DriverCalls.def"
}

const Driver &Driver::open() {
  static std::mutex mutex;
  // By the library's name; never destroyed, because kernels may be unloaded at the end of the process.
  static auto &all = *new std::map<std::string, std::unique_ptr<const Driver>>;
  const char *const asked = std::getenv("KILN_CUDA_DRIVER");
  const std::string name = asked && *asked ? asked : "libcuda.so.1";
  if (!name.starts_with('/') && name.find('/') != std::string::npos)
    throw Error(
        fmt::format("expected KILN_CUDA_DRIVER to be an absolute path, or a name without '/', but got '{}'", name),
        Fault::device);
  const std::lock_guard lock(mutex);
  std::unique_ptr<const Driver> &driver = all[name];
  if (!driver) {
    auto opened = std::make_unique<Driver>();
    opened->library = name;
    opened->lookUp();
    driver = std::move(opened);
  }
  return *driver;
}

std::string Driver::errorText(Result result) const {
  const char *name = nullptr, *text = nullptr;
  getErrorName(result, &name);
  getErrorString(result, &text);
  return name ? fmt::format("{}: {}", name, text ? text : "") : fmt::format("error {}", static_cast<int>(result));
}

/// Whether the context is unusable after this result: a kernel's fault or timeout.
static bool endsContext(Result result) {
  const int number = static_cast<int>(result);
  return number == 700 || number == 702 || number == 710 || (number >= 714 && number <= 719);
}

Error Connection::failure(Result result, const char *call, const std::string &wanted) const {
  if (endsContext(result))
    faulty = true;
  return Error(
      fmt::format("device '{}': expected {}, but {} returned {}", device, wanted, call, driver.errorText(result)),
      Fault::device);
}

void Connection::sayNotGivenBack(Result result, const char *call) const noexcept {
  if (!faulty && !endsContext(result) && result != Result::deinitialized)
    say(fmt::format("device '{}': {} returned {}\n", device, call, driver.errorText(result)));
}

} // namespace kiln::cuda
