// All ways in which the training loop ends, and the signals that ask for it.

#pragma once

#include <csignal>
#include <string>
#include <vector>

namespace kiln {

//===-- Signals -------------------------------------------------------------------------------------------------===//
// Signals that ask a run to stop, so that it can save. Before there is something to save, and in programs that save
// nothing, they end the program as usual.

/// While it lives, these signals are only recorded: SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1 and SIGXCPU (the limit of
/// processor time). Schedulers send SIGUSR1 shortly before the time limit, and mpirun passes it on to all ranks. A
/// SIGINT after any of them ends the program at once. An ignored signal (SIGHUP under nohup) stays ignored. SIGPIPE is
/// recorded although openStandardStreams makes programs ignore it. One object at a time.
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

//===-- Ways ----------------------------------------------------------------------------------------------------===//
// All ways in which the training loop ends, and the checkpoint that each one leaves in the run's folder. The loop looks
// up its way in this table, and saves accordingly. A test covers every way.

/// The reasons why the loop ends: the last step, a request to stop, or an error in one of its parts.
enum class Way { lastStep, stopAfter, signal, gradient, update, badLoss, evaluation, row, best, profile, save };

/// The newest weights in the folder.
enum class Saved {
  lastStep,        // those after the last complete update
  newestCheckpoint // those of the newest checkpoint; nothing newer is saved
};

struct WayOut {
  Way way;
  std::string when;
  Saved saved;
  /// Whether all ranks notice it, so that they can save together. If only one rank notices it, that rank ends; the
  /// others learn of it later, and only the newest checkpoint is left.
  bool isKnownToAll;
};

/// In the order of a step.
const std::vector<WayOut> &waysOut();
const WayOut &wayOut(Way way);

} // namespace kiln
