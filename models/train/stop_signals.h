// Signals that ask a run to stop, so that it can save what it has. Before there is something to save, and in programs
// that save nothing, they end the program as they always do.

#pragma once

#include <csignal>

namespace kiln {

/// While it lives, SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1 (by which schedulers say that time is nearly up, and which
/// mpirun passes on to all ranks) and SIGXCPU (a limit of processor time) are noted and end nothing, except that a
/// SIGINT after any of them ends the program at once. What is ignored (as SIGHUP is under nohup) stays ignored;
/// SIGPIPE, which openStandardStreams has programs ignore, is noted. One object at a time.
///
/// A `launched` process, one of several ranks, notes SIGCONT from its parent, too: Open MPI's mpirun, when it is
/// interrupted, sends that at once, SIGTERM a second later and SIGKILL after another (odls_base_sigkill_timeout).
class StopSignals {
public:
  explicit StopSignals(bool launched = false);
  ~StopSignals();
  StopSignals(const StopSignals &) = delete;

  /// Whether one has come.
  bool asked() const;

private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXCPU, SIGCONT};
  static constexpr int ofAll = 6; // of these, the ones that every process notes
  const int count;
  struct sigaction before[7];
};

} // namespace kiln
