// The table of ways to end a run, and a signal handler that sets a flag.

#include "models/train/ways_out.h"

#include <algorithm>
#include <iterator>
#include <unistd.h>

namespace kiln {

//===-- Signals -------------------------------------------------------------------------------------------------===//

static volatile std::sig_atomic_t noted = 0;

static void note(int signal, siginfo_t *from, void *) {
  if (signal == SIGCONT && from->si_pid != getppid())
    return;                        // a stopped process was continued
  if (noted && signal == SIGINT) { // delivered again when this returns
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  noted = 1;
}

StopSignals::StopSignals(bool launched) : count(launched ? static_cast<int>(std::size(signals)) : ofAll) {
  noted = 0;
  struct sigaction action = {};
  action.sa_sigaction = note;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (int i = 0; i < count; ++i) {
    sigaction(signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN || signals[i] == SIGPIPE)
      sigaction(signals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (int i = 0; i < count; ++i)
    sigaction(signals[i], &before[i], nullptr);
}

bool StopSignals::asked() const { return noted != 0; }

//===-- Ways ----------------------------------------------------------------------------------------------------===//

const std::vector<WayOut> &waysOut() {
  static const std::vector<WayOut> all = {
      {Way::gradient, "a batch cannot be read, or its gradient not be computed", Saved::lastStep, false},
      {Way::signal, "a signal asks for it: SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXCPU (a limit of time)",
       Saved::lastStep, true},
      {Way::update, "an error while the weights change, which are half old and half new", Saved::newestCheckpoint,
       false},
      {Way::badLoss, "the loss or the gradient is not finite; the update was left out", Saved::lastStep, true},
      {Way::evaluation, "an evaluation, its samples or the norms of layers fail, after the update", Saved::lastStep,
       false},
      {Way::row, "the log cannot be written, or the folder was removed or renamed: it is created again",
       Saved::lastStep, true},
      {Way::best, "the link to the best checkpoint cannot be written, or progress not be shown", Saved::lastStep,
       false},
      {Way::profile, "a profile's trace cannot be written", Saved::lastStep, false},
      {Way::save, "the last save fails, or a periodic save finds weights that are not finite", Saved::newestCheckpoint,
       false},
      {Way::stopAfter, "--stop-after", Saved::lastStep, true},
      {Way::lastStep, "all steps are done", Saved::lastStep, true},
  };
  return all;
}

const WayOut &wayOut(Way way) {
  return *std::find_if(waysOut().begin(), waysOut().end(), [=](const WayOut &w) { return w.way == way; });
}

} // namespace kiln
