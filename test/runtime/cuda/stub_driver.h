// The controls of the stub driver that a test runs on.

#pragma once

#include "test/devices.h"
#include "test/runtime/cuda/stub/controls.h"

#include <dlfcn.h>

namespace kiln::test {

/// Every GPU opened from now on is the stub driver's, which begins to record.
inline const StubControls &useStub(const std::string &engine = "simulating") {
  const std::string library = stubDriver(engine);
  ::setenv("KILN_CUDA_DRIVER", library.c_str(), 1);
  ::setenv("CUDA_PATH", "", 1);
  void *const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw std::runtime_error(::dlerror());
  const auto controls = reinterpret_cast<decltype(&kiln_stub_controls)>(::dlsym(handle, "kiln_stub_controls"));
  controls()->reset();
  return *controls();
}

} // namespace kiln::test
