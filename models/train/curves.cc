// Draws curves as SVG; curve_log.cc reads them.

#include "models/train/curves.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>

namespace kiln {

/// Means of the losses of `length` consecutive steps, each drawn at its last step.
static std::vector<CurvePoint> smoothed(const std::vector<CurvePoint> &points, double length) {
  std::map<double, std::vector<double>> stretches; // by last step
  for (const CurvePoint &p : points)
    stretches[std::ceil(p.at / length) * length].push_back(p.loss);
  std::vector<CurvePoint> means;
  for (const auto &[step, losses] : stretches) {
    double mean = 0;
    for (const double loss : losses)
      mean += loss / static_cast<double>(losses.size()); // avoids overflow of the sum
    means.push_back({std::min(step, points.back().at), mean});
  }
  return means;
}

static constexpr double largest = std::numeric_limits<double>::max();

/// The loss at `at`, interpolated linearly between two points unless x is the step.
static std::optional<double> lossAt(const std::map<double, double> &losses, double at, Over over) {
  const auto after = losses.lower_bound(at);
  if (after == losses.end())
    return {};
  if (after->first == at)
    return after->second;
  if (over == Over::steps || after == losses.begin())
    return {};
  const auto before = std::prev(after);
  const double share = (at - before->first) / (after->first - before->first);
  return before->second * (1 - share) + after->second * share;
}

/// `points` minus those of `base` at the same x.
static std::vector<CurvePoint> differences(const std::vector<CurvePoint> &points, const std::vector<CurvePoint> &base,
                                           Over over) {
  std::map<double, double> losses;
  for (const CurvePoint &p : base)
    losses[p.at] = p.loss;
  std::vector<CurvePoint> out;
  for (const CurvePoint &p : points)
    if (const std::optional<double> loss = lossAt(losses, p.at, over))
      out.push_back({p.at, std::clamp(p.loss - *loss, -largest, largest)});
  return out;
}

/// The last validation loss, for the legend; empty without one.
static std::string lastOf(const Curve &curve) {
  if (curve.validation.empty())
    return "";
  const double loss = curve.validation.back().loss;
  return std::abs(loss) < 1e6 ? fmt::format(" {:.4f}", loss) : fmt::format(" {:.4g}", loss);
}

/// The position of the last point.
static double endOf(const Curve &curve) {
  double end = 0;
  for (const std::vector<CurvePoint> *points : {&curve.training, &curve.validation})
    if (!points->empty())
      end = std::max(end, points->back().at);
  return end;
}

std::string pictureOf(const std::vector<Curve> &curves, const CurveOf &of) {
  if (curves.empty())
    throw Error("expected runs to draw, but got none");
  Span steps, losses, apart;
  steps.add(0);
  for (const Curve &curve : curves)
    steps.add(endOf(curve));
  const double hundredth = steps.high / 100;
  const double length = of.over == Over::steps ? std::max(1.0, std::floor(hundredth)) : std::max(hundredth, 1e-9);
  std::vector<Curve> shown, differing;
  for (const Curve &curve : curves) {
    shown.push_back({curve.name, smoothed(curve.training, length), curve.validation});
    differing.push_back({curve.name, differences(shown.back().training, shown.front().training, of.over),
                         differences(curve.validation, curves.front().validation, of.over)});
    losses.add(shown.back().training);
    losses.add(shown.back().validation);
    apart.add(differing.back().training);
    apart.add(differing.back().validation);
  }
  const Panel upper(28, 260, steps, losses), lower(330, 130, steps, apart);
  const bool isAlone = curves.size() == 1; // a single run has no differences
  std::string body = chartTitle(
      fmt::format("{} over {}, dots: validation", shortened(of.tag), overNames.at(static_cast<size_t>(of.over))));
  body += upper.axes();
  if (!isAlone)
    body += chartTitle("less that of " + shortened(curves.front().name), 322) + lower.axes();
  for (size_t i = 0; i < shown.size(); ++i) {
    body += drawn(upper, shown[i].training, shown[i].validation, i) +
            legend(shown[i].name, lastOf(shown[i]), i, shown.size());
    if (!isAlone)
      body += drawn(lower, differing[i].training, differing[i].validation, i);
  }
  return chartOf(isAlone ? 316 : 490, body);
}

} // namespace kiln
