// A signal handler that sets a flag.

#include "models/train/stop_signals.h"

#include <iterator>
#include <unistd.h>

namespace kiln {

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

} // namespace kiln
