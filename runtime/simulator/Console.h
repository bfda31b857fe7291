// The output of kernels.

#pragma once

#include <functional>
#include <mutex>
#include <string_view>

namespace kiln::simulator {

/// Receives the output of the threads of a launch, one printf at a time. Thread-safe.
class Console {
public:
  using Sink = std::function<void(std::string_view text)>;
  explicit Console(Sink sink) : sink(std::move(sink)) {}

  void print(std::string_view text) {
    const std::lock_guard lock(mutex);
    sink(text);
  }

private:
  const Sink sink;
  std::mutex mutex;
};

} // namespace kiln::simulator
