// Parts of a chart (SVG): frames with axes, lines, dots and a legend. Loss curves (curves.h) and the speeds of
// `kilnc --bench` are drawn with them.

#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

/// A point of a curve: a value after some steps, seconds or tokens, or at a size.
struct CurvePoint {
  double at = 0;
  double loss = 0;
};

/// A range of numbers that grows.
struct Span {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double x) {
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  void add(const std::vector<CurvePoint> &points) {
    for (const CurvePoint &p : points)
      add(p.loss);
  }
  /// Half the length, above 0; halved so that it is finite for any ends.
  double half() const;
  /// The relative position of x: 0 at the low end, 1 at the high end.
  double toFraction(double x) const { return (x / 2 - low / 2) / half(); }
};

/// A frame with axes.
class Panel {
public:
  Panel(double top, double height, Span steps, Span losses) : top(top), height(height), steps(steps), losses(losses) {}

  std::string formatPoint(CurvePoint p) const;
  double toX(double step) const { return left + width * steps.toFraction(step); }
  double toY(double loss) const { return top + height * (1 - losses.toFraction(loss)); }
  /// The frame, with labelled grid lines at round numbers.
  std::string axes() const;
  /// As above, with these labels on the horizontal axis.
  std::string axes(const std::vector<std::pair<double, std::string>> &labels) const;

  static constexpr double left = 60, width = 560;

private:
  double top, height;
  Span steps, losses;
};

/// A line and dots in the colour of curve `index`.
std::string drawn(const Panel &panel, const std::vector<CurvePoint> &line, const std::vector<CurvePoint> &dots,
                  size_t index);
/// The legend entry of curve `index` of `count`: its name in its colour, a text after it, and a piece of its line. A
/// long name is cut and has the full one as a tooltip.
std::string legend(const std::string &name, const std::string &after, size_t index, size_t count);
/// A text above a frame, whose baseline is at `y`.
std::string chartTitle(const std::string &text, double y = 18);
/// The chart: `body` on white, `height` pixels high.
std::string wrapChart(double height, const std::string &body);

/// `text` escaped for SVG; U+FFFD for bytes that are not UTF-8 and for characters that XML does not allow.
std::string escapedForSvg(const std::string &text);
/// `name`, or its two ends if it is too wide for a frame.
std::string shortened(const std::string &name);

} // namespace kiln
