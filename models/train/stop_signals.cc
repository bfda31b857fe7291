// A handler that notes.

#include "models/train/stop_signals.h"

#include <iterator>

namespace kiln {

static volatile std::sig_atomic_t noted = 0;

static void note(int signal) {
  if (noted && signal == SIGINT) { // delivered when this returns
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  noted = 1;
}

StopSignals::StopSignals() {
  noted = 0;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN || signals[i] == SIGPIPE)
      sigaction(signals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < std::size(signals); ++i)
    sigaction(signals[i], &before[i], nullptr);
}

bool StopSignals::asked() const { return noted != 0; }

} // namespace kiln
