// Reading logs, and drawing lines between axes.

#include "models/train/curves.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/data/json.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <sstream>

namespace kiln {

Curve readCurve(const std::string &folder) {
  const std::string path = folder + "/log.jsonl";
  Curve curve;
  const std::filesystem::path place = std::filesystem::path(folder).lexically_normal();
  curve.name = place.has_filename() ? place.filename() : place.parent_path().filename();
  std::istringstream lines(readFile(path));
  for (std::string line; std::getline(lines, line);) {
    const JsonObject row(path, line);
    const int64_t step = row.integer("step");
    curve.training.push_back({step, row.number("loss")});
    if (row.has("val_loss"))
      curve.validation.push_back({step, row.number("val_loss")});
  }
  if (curve.training.empty())
    throw Error(fmt::format("expected steps in '{}', but there are none", path));
  return curve;
}

namespace {

/// A range of numbers, that grows.
struct Span {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double x) { low = std::min(low, x), high = std::max(high, x); }
  void add(const std::vector<CurvePoint> &points) {
    for (const CurvePoint &p : points)
      add(p.loss);
  }
  double size() const { return high - low; }
};

/// A frame with axes, in which points have places.
class Panel {
public:
  Panel(double top, double height, Span steps, Span losses) : top(top), height(height), steps(steps), losses(losses) {}

  std::string placeOf(CurvePoint p) const { return fmt::format("{:.1f},{:.1f}", xOf(p.step), yOf(p.loss)); }
  double xOf(double step) const { return left + width * (step - steps.low) / std::max(steps.size(), 1.0); }
  double yOf(double loss) const { return top + height * (losses.high - loss) / std::max(losses.size(), 1e-9); }
  /// The frame, and lines at round numbers with these beside them.
  std::string axes() const;

  static constexpr double left = 60, width = 560;

private:
  double top, height;
  Span steps, losses;
};

} // namespace

/// Between 4 and 10 round numbers within a span: multiples of 1, 2 or 5 times a power of ten.
static std::vector<double> ticksOf(Span span) {
  const double rough = std::max(span.size(), 1e-9) / 5, power = std::pow(10, std::floor(std::log10(rough)));
  const double unit = rough < 2 * power ? power : rough < 5 * power ? 2 * power : 5 * power;
  std::vector<double> ticks;
  for (double n = std::ceil(span.low / unit); n * unit <= span.high; ++n)
    ticks.push_back(n * unit);
  return ticks;
}

std::string Panel::axes() const {
  std::string text = fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>\n",
                                 left, top, width, height);
  for (const double loss : ticksOf(losses))
    text += fmt::format("<path d=\"M{0} {1:.1f}h{2}\" stroke=\"#ddd\"/><text x=\"{3}\" y=\"{4:.1f}\" "
                        "text-anchor=\"end\">{5:.6g}</text>\n",
                        left, yOf(loss), width, left - 6, yOf(loss) + 4, loss);
  for (const double step : ticksOf(steps))
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", xOf(step),
                        top + height + 16, step);
  return text;
}

/// Means of the losses of `length` steps at a time, each after its last step.
static std::vector<CurvePoint> smoothed(const std::vector<CurvePoint> &points, int64_t length) {
  std::map<int64_t, std::pair<double, int64_t>> sums; // by the last step of a stretch: sum and count
  for (const CurvePoint &p : points) {
    auto &[sum, count] = sums[(p.step + length - 1) / length * length];
    sum += p.loss;
    ++count;
  }
  std::vector<CurvePoint> means;
  for (const auto &[step, sum] : sums)
    means.push_back({std::min(step, points.back().step), sum.first / static_cast<double>(sum.second)});
  return means;
}

/// `points` less those of `base` after the same steps.
static std::vector<CurvePoint> differences(const std::vector<CurvePoint> &points, const std::vector<CurvePoint> &base) {
  std::map<int64_t, double> losses;
  for (const CurvePoint &p : base)
    losses[p.step] = p.loss;
  std::vector<CurvePoint> out;
  for (const CurvePoint &p : points)
    if (const auto at = losses.find(p.step); at != losses.end())
      out.push_back({p.step, p.loss - at->second});
  return out;
}

/// The colours of runs lie far from each other: 137° is the golden section of a circle.
static size_t hueOf(size_t run) { return (215 + 137 * run) % 360; }

/// A line through training losses and dots at validation losses, in the colour of run number `index`.
static std::string drawn(const Panel &panel, const std::vector<CurvePoint> &training,
                         const std::vector<CurvePoint> &validation, size_t index) {
  const std::string colour = fmt::format("hsl({},70%,45%)", hueOf(index));
  std::string text = "<polyline fill=\"none\" stroke=\"" + colour + "\" points=\"";
  for (const CurvePoint &p : training)
    text += panel.placeOf(p) + " ";
  text += "\"/>\n";
  for (const CurvePoint &p : validation)
    text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                        panel.xOf(static_cast<double>(p.step)), panel.yOf(p.loss), colour);
  return text;
}

/// The name of run number `index` in its colour, with its last validation loss.
static std::string legend(const Curve &curve, size_t index) {
  const std::string last = curve.validation.empty() ? "" : fmt::format(" {:.4f}", curve.validation.back().loss);
  return fmt::format("<text x=\"{}\" y=\"{}\" fill=\"hsl({},70%,45%)\">{}{}</text>\n", Panel::left + Panel::width - 200,
                     44 + 16 * index, hueOf(index), curve.name, last);
}

std::string pictureOf(const std::vector<Curve> &curves) {
  if (curves.empty())
    throw Error("expected runs to draw, but got none");
  Span steps, losses, apart;
  steps.add(0);
  for (const Curve &curve : curves)
    steps.add(static_cast<double>(curve.training.back().step));
  const int64_t length = std::max<int64_t>(1, static_cast<int64_t>(steps.high) / 100);
  std::vector<Curve> shown, differing;
  for (const Curve &curve : curves) {
    shown.push_back({curve.name, smoothed(curve.training, length), curve.validation});
    differing.push_back({curve.name, differences(shown.back().training, shown.front().training),
                         differences(curve.validation, curves.front().validation)});
    losses.add(shown.back().training);
    losses.add(shown.back().validation);
    apart.add(differing.back().training);
    apart.add(differing.back().validation);
  }
  const Panel upper(28, 260, steps, losses), lower(330, 130, steps, apart);
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"490\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"640\" height=\"490\" fill=\"white\"/>\n";
  text += fmt::format("<text x=\"{0}\" y=\"18\">loss over steps, dots: validation</text>\n"
                      "<text x=\"{0}\" y=\"322\">less that of {1}</text>\n",
                      Panel::left, curves.front().name);
  text += upper.axes() + lower.axes();
  for (size_t i = 0; i < shown.size(); ++i) {
    text += drawn(upper, shown[i].training, shown[i].validation, i) + legend(shown[i], i);
    text += drawn(lower, differing[i].training, differing[i].validation, i);
  }
  return text + "</svg>\n";
}

} // namespace kiln
