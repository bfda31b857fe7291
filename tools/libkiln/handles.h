// Defines the opaque types of kiln.h, and converts C++ errors to its status codes.

#pragma once

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "runtime/simulator/SimulatorDevice.h"
#include "tools/libkiln/kiln.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// A device that is open; one for each name. Calls take turns at it.
struct kiln_device {
  std::shared_ptr<kiln::Device> device;
  std::mutex mutex;
  int users = 0;                      // guarded by the mutex of all devices
  bool borrowsHostMemory = false;     // a simulator, which is lent the arguments of each launch
  std::map<uintptr_t, uintptr_t> own; // begin and end of memory of kiln_allocate()
  int32_t type = 1, id = 0;           // DLPack's
};

/// A kernel, and the text of its config for queries.
struct kiln_kernel {
  const kiln::Kernel *kernel;
};

namespace kiln::c {

/// Remembers an error's text for kiln_error(); its status.
kiln_status failed(const std::exception *error) noexcept;

/// Calls `body`; an exception becomes a status.
template <class Body> kiln_status guarded(Body &&body) noexcept {
  try {
    body();
    return KILN_OK;
  } catch (const std::exception &error) {
    return failed(&error);
  } catch (...) {
    return failed(nullptr);
  }
}

/// Throws Error if `pointer` is null; messages call it `what`.
void expectGiven(const void *pointer, const char *what);

/// Sets `args` to the arguments of a launch in C++. The memory of the former ones is used again, so that a launch
/// allocates none. Throws Error, with the argument's number, for a tensor of another device, and for an unsupported
/// type or rank.
void setArgs(std::vector<Arg> &args, const kiln_device &device, const kiln_argument *arguments, size_t count);

/// Throws Error if a kernel, expanded for these arguments, writes one whose memory may not be written.
void expectWritable(const std::string &kernel, const Signature &signature, const kiln_argument *arguments,
                    size_t count);

/// Memory of the host that a simulator may touch while this lives; nothing on other devices.
class Loan {
public:
  Loan(const kiln_device &device, const std::vector<Arg> &args);
  Loan(const Loan &) = delete;

private:
  struct TakeBack {
    SimulatorDevice *borrower;
    void operator()(void *memory) const { borrower->takeBack(memory); }
  };
  std::vector<std::unique_ptr<void, TakeBack>> lent;
};

} // namespace kiln::c
