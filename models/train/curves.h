// The loss curves of several runs as one picture (SVG): losses over steps above, and below, on a finer scale, by how
// much each run differs from the first.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// A loss after so many steps.
struct CurvePoint {
  int64_t step = 0;
  double loss = 0;
};

/// What a run's log says of its losses, in the order of the steps.
struct Curve {
  std::string name;
  std::vector<CurvePoint> training, validation;
};

/// The curve of the run in `folder`, named as that. A last line that breaks off is left out. Throws Error where there
/// is no log, no step in it, or a line that is no step.
Curve readCurve(const std::string &folder);

/// The picture. Training losses are means over a hundredth of the longest run; validation losses are dots, the last of
/// which stands beside the run's name. Long names are shown by their ends. Throws Error for no curve.
std::string pictureOf(const std::vector<Curve> &curves);

} // namespace kiln
