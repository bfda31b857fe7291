// The curves of several runs as one picture (SVG): losses, or another number of their logs, over steps, seconds or
// tokens above, and below, on a finer scale, by how much each run differs from the first.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

/// What curves go along: steps, seconds that a run took, all of its parts together, or tokens that it has seen.
enum class Over { steps, seconds, tokens };
inline constexpr std::array<const char *, 3> overNames = {"steps", "seconds", "tokens"};

/// What is drawn: numbers of the log's rows, and those that have `val_` before their name, which stand out as dots.
struct CurveOf {
  std::string tag = "loss";
  Over over = Over::steps;
};

/// A loss after so many steps, seconds or tokens.
struct CurvePoint {
  double at = 0;
  double loss = 0;
};

/// What a run's log says of its losses, in the order of the steps.
struct Curve {
  std::string name;
  std::vector<CurvePoint> training, validation;
};

/// The curve of the run in `folder`, named as that. A last line that breaks off is left out. Throws Error where there
/// is no log, no step in it that says what is asked for, or a line that is no step.
Curve readCurve(const std::string &folder, const CurveOf &of = {});

/// The picture. Training losses are means over a hundredth of the longest run; validation losses are dots, the last of
/// which stands beside the run's name. Runs differ at the same steps; at the same seconds or tokens, where the first
/// one is between two of its points, it is taken to lie on the line between them. Long names are shown by their ends.
/// Throws Error for no curve.
std::string pictureOf(const std::vector<Curve> &curves, const CurveOf &of = {});

} // namespace kiln
