// All ways in which the training loop ends, and the checkpoint that each one leaves in the run's folder. The loop looks
// up its way in this table, and saves accordingly. A test covers every way.

#pragma once

#include <string>
#include <vector>

namespace kiln {

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
