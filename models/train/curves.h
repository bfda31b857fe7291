// Loss curves of several runs as one picture (SVG), and the command `plot` of every trainer, which draws them.

#pragma once

#include "models/train/chart.h"

#include <array>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kiln {

//===-- Drawing -------------------------------------------------------------------------------------------------===//
// Loss curves of several runs as one picture (SVG): losses, or another number of their logs, over steps, seconds or
// tokens. Below, on a finer scale, the difference of each run from the first.

/// The horizontal axis: steps, seconds of training over all sessions of a run, or tokens.
enum class Over { steps, seconds, tokens };
inline constexpr std::array<const char *, 3> overNames = {"steps", "seconds", "tokens"};

/// The quantity drawn: numbers of the log's rows as lines, and those with `val_` before their name as dots.
struct CurveOf {
  std::string tag = "loss";
  Over over = Over::steps;
};

/// The curve of a run, in the order of the steps.
struct Curve {
  std::string name;
  std::vector<CurvePoint> training, validation;
};

/// Reads the curve of the run in `folder` and names it after the folder. An incomplete last line is skipped. Throws
/// Error if there is no log, no step with the quantity, or a line that is not a step.
Curve readCurve(const std::string &folder, const CurveOf &of = {});

/// The picture. Training losses are means over a hundredth of the longest run. Validation losses are dots; the last one
/// is printed next to the run's name. Differences are taken at equal steps, or at equal seconds or tokens with linear
/// interpolation of the first run. Long names are cut at the front. Throws Error without a curve.
std::string drawCurves(const std::vector<Curve> &curves, const CurveOf &of = {});

//===-- The command ---------------------------------------------------------------------------------------------===//

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
