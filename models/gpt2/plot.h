// `gpt2 plot`: the loss curves of runs as a picture.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Writes the picture (models/train/curves.h) of the runs that the options name. Throws Error.
void plot(const PlotOptions &options);

} // namespace kiln
