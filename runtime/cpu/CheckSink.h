// Records the failed assertions of running programs.

#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace kiln {

/// Keeps the first failure in the order of launches and, within a launch, of programs: the first one with a single
/// thread.
class CheckSink {
public:
  /// Begins a launch of `kernel`.
  void beginLaunch(const std::string &kernel, int64_t gridX, int64_t gridY);
  void fail(const char *message, const char *where, int64_t program, int64_t element);
  /// The text of the first failure since the last call, or nothing.
  std::optional<std::string> take();

  /// Makes this the sink of the calling thread's programs, until the object dies.
  struct Scope {
    explicit Scope(CheckSink &sink);
    ~Scope();
  };

private:
  struct Failure {
    std::string text;
    int64_t launch = 0, program = 0;
  };
  std::mutex mutex;
  std::optional<Failure> first;
  std::string kernel;
  int64_t launch = 0, gridX = 1, gridY = 1;
};

} // namespace kiln
