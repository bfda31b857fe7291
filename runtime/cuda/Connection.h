// Calls of the CUDA driver with errors, and RAII owners of its objects.

#pragma once

#include "dialect/dsl/Types.h"
#include "runtime/cuda/Driver.h"

#include <atomic>
#include <optional>

namespace kiln::cuda {

class Connection {
public:
  Connection(const Driver &driver, std::string device) : driver(driver), device(std::move(device)) {}

  const Driver &driver;
  const std::string device; // "cuda:0"

  /// Calls the driver to get `wanted`, such as "a stream". Throws failure() unless it succeeds.
  template <class... P, class... A> void call(const char *wanted, const Call<P...> &call, A... arguments) const {
    if (const Result result = call(arguments...); result != Result::success)
      throw failure(result, call.name, wanted);
  }
  /// An Error (device): `device 'cuda:0': expected WANTED, but CALL returned CUDA_ERROR_…: …`.
  Error failure(Result result, const char *call, const std::string &wanted) const;
  /// Calls the driver to release something. A failure is reported on standard error, except after a fault of a kernel,
  /// when every call fails, and while the process ends.
  template <class... P, class... A> void giveBack(const Call<P...> &call, A... arguments) const noexcept {
    if (const Result result = call(arguments...); result != Result::success)
      sayNotGivenBack(result, call.name);
  }

private:
  void sayNotGivenBack(Result result, const char *call) const noexcept;
  mutable std::atomic<bool> faulty = false; // a kernel has put the context into an error state
};

/// An object of the driver, or nothing.
template <class Handle> class Owned {
public:
  Owned(const Connection &connection, const Call<Handle> &destroy) : connection(connection), destroy(destroy) {}
  Owned(const Owned &) = delete;
  ~Owned() { reset(); }

  void take(Handle made) {
    reset();
    handle = made;
  }
  void reset() noexcept {
    if (handle)
      connection.giveBack(destroy, *handle);
    handle.reset();
  }
  bool holds() const { return handle.has_value(); }
  Handle get() const { return *handle; }

private:
  const Connection &connection;
  const Call<Handle> &destroy;
  std::optional<Handle> handle;
};

} // namespace kiln::cuda
