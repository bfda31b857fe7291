// Signals that ask a run to stop, so that it can save. Before there is something to save, and in programs that save
// nothing, they end the program as usual.

#pragma once

#include <csignal>

namespace kiln {

/// While it lives, these signals are only recorded, except that a SIGINT after any of them ends the program at once:
/// SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1 (schedulers send it shortly before the time limit, and mpirun passes it on
/// to all ranks) and SIGXCPU (the limit of processor time). An ignored signal (SIGHUP under nohup) stays ignored.
/// SIGPIPE is recorded although openStandardStreams makes programs ignore it. One object at a time.
///
/// A `launched` process, one of several ranks, also records SIGCONT from its parent. Open MPI's mpirun sends that at
/// once when it is interrupted, SIGTERM a second later and SIGKILL after another (odls_base_sigkill_timeout).
class StopSignals {
public:
  explicit StopSignals(bool launched = false);
  ~StopSignals();
  StopSignals(const StopSignals &) = delete;

  /// Whether one was recorded.
  bool asked() const;

private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXCPU, SIGCONT};
  static constexpr int ofAll = 6; // number of those that every process records
  const int count;
  struct sigaction before[7];
};

} // namespace kiln
