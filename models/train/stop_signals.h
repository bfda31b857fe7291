// Signals that ask a run to stop, so that it can save what it has. Before there is something to save, and in programs
// that save nothing, they end the program as they always do.

#pragma once

#include <csignal>

namespace kiln {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGPIPE are noted and end nothing, except that a SIGINT after any of
/// them ends the program at once. What is ignored (as SIGHUP is under nohup) stays ignored; SIGPIPE, which
/// openStandardStreams has programs ignore, is noted. One object at a time.
class StopSignals {
public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals &) = delete;

  /// Whether one has come.
  bool asked() const;

private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  struct sigaction before[4];
};

} // namespace kiln
