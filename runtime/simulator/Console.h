// What kernels print.

#pragma once

#include <functional>
#include <mutex>
#include <string_view>

namespace kiln::simulator {

/// Takes what the threads of a launch print, each printf in one piece. Thread-safe.
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
