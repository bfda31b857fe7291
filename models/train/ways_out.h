// Every way out of the loop of steps, once: what ends a run in progress, and what its folder has then. The loop says
// which way it would be in, and saves as this table says; a test takes each.

#pragma once

#include <string>
#include <vector>

namespace kiln {

/// What ends the loop: it comes to an end, is asked to, or there is an error in one of its parts.
enum class Way { lastStep, stopAfter, signal, gradient, update, badLoss, evaluation, row, best, profile, save };

/// The newest weights in the folder.
enum class Saved {
  lastStep,        // those of the last step whose update is done
  newestCheckpoint // none that are newer than the newest checkpoint is already
};

struct WayOut {
  Way way;
  std::string when;
  Saved saved;
  /// All ranks know of it: they save together. Of what one knows alone the others hear when it is gone, and the newest
  /// checkpoint is what there is.
  bool isKnownToAll;
};

/// In the order of a step.
const std::vector<WayOut> &waysOut();
const WayOut &wayOut(Way way);

} // namespace kiln
