// Signals that ask a run to stop, so that it can save. Before there is something to save, and in programs that save
// nothing, they end the program as usual.

#pragma once

#include <csignal>

namespace kiln {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGPIPE are only recorded, except that a SIGINT after any of them ends
/// the program at once. An ignored signal (SIGHUP under nohup) stays ignored. SIGPIPE is recorded although
/// openStandardStreams makes programs ignore it. One object at a time.
///
/// A `launched` process, one of several ranks, also records SIGCONT from its parent. Open MPI's mpirun sends that at
/// once when it is interrupted, SIGTERM a second later and SIGKILL after another (odls_base_sigkill_timeout). It also
/// records SIGUSR1, which mpirun passes on to all ranks.
class StopSignals {
public:
  explicit StopSignals(bool launched = false);
  ~StopSignals();
  StopSignals(const StopSignals &) = delete;

  /// Whether one was recorded.
  bool asked() const;

private:
  static constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCONT, SIGUSR1};
  static constexpr int ofAll = 4; // number of those that every process records
  const int count;
  struct sigaction before[6];
};

} // namespace kiln
