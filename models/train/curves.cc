// Draws curves as SVG; curve_log.cc reads them.

#include "models/train/curves.h"
#include "dialect/dsl/Types.h"
#include "models/data/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>

namespace kiln {

namespace {

/// A range of numbers that grows.
struct Span {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double x) { low = std::min(low, x), high = std::max(high, x); }
  void add(const std::vector<CurvePoint> &points) {
    for (const CurvePoint &p : points)
      add(p.loss);
  }
  /// Half the length, above 0; halved so that it is finite for any ends.
  double half() const { return std::max({high / 2 - low / 2, std::max(std::abs(low), std::abs(high)) * 1e-9, 1e-9}); }
  /// The relative position of x: 0 at the low end, 1 at the high end.
  double shareOf(double x) const { return (x / 2 - low / 2) / half(); }
};

/// A frame with axes.
class Panel {
public:
  Panel(double top, double height, Span steps, Span losses) : top(top), height(height), steps(steps), losses(losses) {}

  std::string placeOf(CurvePoint p) const { return fmt::format("{:.1f},{:.1f}", xOf(p.at), yOf(p.loss)); }
  double xOf(double step) const { return left + width * steps.shareOf(step); }
  double yOf(double loss) const { return top + height * (1 - losses.shareOf(loss)); }
  /// The frame, with labelled grid lines at round numbers.
  std::string axes() const;

  static constexpr double left = 60, width = 560;

private:
  double top, height;
  Span steps, losses;
};

} // namespace

/// Between 4 and 10 round numbers within a span: multiples of 1, 2 or 5 times a power of ten.
static std::vector<double> ticksOf(Span span) {
  const double rough = span.half() / 2.5, power = std::pow(10, std::floor(std::log10(rough)));
  const double unit = rough < 2 * power ? power : rough < 5 * power ? 2 * power : 5 * power;
  std::vector<double> ticks;
  const double first = std::ceil(span.low / unit), last = std::floor(span.high / unit);
  for (double n = first; n <= last; ++n) // both are integers below 10¹⁰
    ticks.push_back(n * unit);
  return ticks;
}

std::string Panel::axes() const {
  std::string text =
      fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888888\"/>\n", left, top,
                  width, height);
  for (const double loss : ticksOf(losses))
    text += fmt::format("<path d=\"M{0} {1:.1f}h{2}\" stroke=\"#dddddd\"/><text x=\"{3}\" y=\"{4:.1f}\" "
                        "text-anchor=\"end\">{5:.6g}</text>\n",
                        left, yOf(loss), width, left - 6, yOf(loss) + 4, loss);
  for (const double step : ticksOf(steps))
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", xOf(step),
                        top + height + 16, step);
  return text;
}

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

/// `text` escaped for SVG; U+FFFD for bytes that are not UTF-8 and for characters that XML does not allow.
static std::string escaped(const std::string &text) {
  static const std::string unknown = "\xEF\xBF\xBD";
  const std::string valid = nlohmann::json::parse(textOf(nlohmann::ordered_json(text))).get<std::string>();
  std::string out;
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto code = static_cast<unsigned char>(valid[i]);
    const std::string three = valid.substr(i, 3);
    if (code == '&' || code == '<' || code == '>' || code == '"')
      out += fmt::format("&#{};", code);
    else if (three == "\xEF\xBF\xBE" || three == "\xEF\xBF\xBF") // U+FFFE and U+FFFF
      out += unknown, i += 2;
    else
      out += code < ' ' ? unknown : std::string(1, valid[i]);
  }
  return out;
}

/// The colours of runs: dark enough for thin lines and text on white, and distinct in hue and lightness.
static constexpr std::array colours = {"#0072b2", "#c44e00", "#00805e", "#aa3377",
                                       "#4b3fa8", "#8a6d00", "#0f8aa0", "#555555"};
static const char *colourOf(size_t run) { return colours[run % colours.size()]; }
/// Dashes of lines whose colour is used again.
static std::string dashesOf(size_t run) {
  const size_t round = run / colours.size();
  return round ? fmt::format(" stroke-dasharray=\"{} 3\"", 3 * round) : "";
}

/// The maximum width of a name next to the frames, in ASCII characters.
static constexpr size_t mostOfName = 56;

/// `name`, or its two ends if it is wider than `mostOfName`; characters outside ASCII may be twice as wide.
static std::string shortened(const std::string &name) {
  std::vector<std::string> characters;
  for (const char c : name)
    if (characters.empty() || (static_cast<unsigned char>(c) & 0xC0) != 0x80)
      characters.emplace_back(1, c);
    else
      characters.back() += c;
  const auto widthOf = [](const std::string &character) { return character.size() > 1 ? size_t{2} : size_t{1}; };
  size_t width = 0;
  for (const std::string &character : characters)
    width += widthOf(character);
  if (width <= mostOfName)
    return name;
  std::string head, tail;
  size_t first = 0, last = characters.size();
  for (size_t room = mostOfName / 2 - 1; room >= widthOf(characters[first]); head += characters[first++])
    room -= widthOf(characters[first]);
  for (size_t room = mostOfName / 2 - 1; room >= widthOf(characters[last - 1]); tail = characters[--last] + tail)
    room -= widthOf(characters[last - 1]);
  return head + "…" + tail;
}

/// A line of training losses and dots of validation losses, in the colour of run `index`.
static std::string drawn(const Panel &panel, const std::vector<CurvePoint> &training,
                         const std::vector<CurvePoint> &validation, size_t index) {
  const std::string colour = colourOf(index);
  std::string text = fmt::format(R"(<polyline fill="none" stroke="{}"{} points=")", colour, dashesOf(index));
  for (const CurvePoint &p : training)
    text += panel.placeOf(p) + " ";
  text += "\"/>\n";
  for (const CurvePoint &p : validation)
    text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", panel.xOf(p.at),
                        panel.yOf(p.loss), colour);
  return text;
}

/// The legend entry of run `index` of `count`: its name in its colour, its last validation loss, and a piece of its
/// line. A shortened name has the full one as a tooltip.
static std::string legend(const Curve &curve, size_t index, size_t count) {
  std::string last;
  if (!curve.validation.empty()) {
    const double loss = curve.validation.back().loss;
    last = std::abs(loss) < 1e6 ? fmt::format(" {:.4f}", loss) : fmt::format(" {:.4g}", loss);
  }
  const std::string name = shortened(curve.name);
  const double pitch = std::min(16.0, 240.0 / static_cast<double>(count)), right = Panel::left + Panel::width - 8;
  const double y = 30 + pitch * static_cast<double>(index + 1);
  return fmt::format(
      "<path d=\"M{:g} {:.1f}h20\" stroke=\"{}\"{}/>"
      "<text x=\"{:g}\" y=\"{:.1f}\" font-size=\"{:.3g}\" text-anchor=\"end\" fill=\"{}\">{}{}{}</text>\n",
      right - 20, y - pitch / 4, colourOf(index), dashesOf(index), right - 26, y, pitch * 0.75, colourOf(index),
      name == curve.name ? "" : "<title>" + escaped(curve.name) + "</title>", escaped(name), last);
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
  std::string text = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"650\" height=\"{0}\" "
                                 "font-family=\"sans-serif\" font-size=\"12\">\n"
                                 "<rect width=\"650\" height=\"{0}\" fill=\"#ffffff\"/>\n",
                                 isAlone ? 316 : 490);
  text += fmt::format("<text x=\"{}\" y=\"18\">{} over {}, dots: validation</text>\n", Panel::left,
                      escaped(shortened(of.tag)), overNames.at(static_cast<size_t>(of.over)));
  text += upper.axes();
  if (!isAlone)
    text += fmt::format("<text x=\"{}\" y=\"322\">less that of {}</text>\n", Panel::left,
                        escaped(shortened(curves.front().name))) +
            lower.axes();
  for (size_t i = 0; i < shown.size(); ++i) {
    text += drawn(upper, shown[i].training, shown[i].validation, i) + legend(shown[i], i, shown.size());
    if (!isAlone)
      text += drawn(lower, differing[i].training, differing[i].validation, i);
  }
  return text + "</svg>\n";
}

} // namespace kiln
