// The command `plot` of every trainer: the loss curves of runs as a picture.

#pragma once

#include "models/train/curves.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln {

struct PlotOptions {
  std::vector<std::string> runs; // folders
  std::string out;               // the picture; `-`: standard output
  CurveOf of = {};
  bool follow = false; // rewrites it while a run writes to one of the folders
};

/// Adds the command, with its flags.
CLI::App *addPlot(CLI::App &app, PlotOptions &options);
/// Writes the picture (models/train/curves.h). Throws Error.
void plot(const PlotOptions &options);

} // namespace kiln
