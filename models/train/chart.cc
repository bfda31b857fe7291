// Draws the parts of a chart as SVG.

#include "models/train/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {

double Span::half() const {
  return std::max({high / 2 - low / 2, std::max(std::abs(low), std::abs(high)) * 1e-9, 1e-9});
}

std::string Panel::formatPoint(CurvePoint p) const { return fmt::format("{:.1f},{:.1f}", toX(p.at), toY(p.loss)); }

/// Between 4 and 10 round numbers within a span: multiples of 1, 2 or 5 times a power of ten.
static std::vector<double> chooseTicks(Span span) {
  const double rough = span.half() / 2.5, power = std::pow(10, std::floor(std::log10(rough)));
  const double unit = rough < 2 * power ? power : rough < 5 * power ? 2 * power : 5 * power;
  std::vector<double> ticks;
  const double first = std::ceil(span.low / unit), last = std::floor(span.high / unit);
  for (double n = first; n <= last; ++n) // both are integers below 10¹⁰
    ticks.push_back(n * unit);
  return ticks;
}

std::string Panel::axes() const {
  std::vector<std::pair<double, std::string>> labels;
  for (const double step : chooseTicks(steps))
    labels.emplace_back(step, fmt::format("{:g}", step));
  return axes(labels);
}

std::string Panel::axes(const std::vector<std::pair<double, std::string>> &labels) const {
  std::string text =
      fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888888\"/>\n", left, top,
                  width, height);
  for (const double loss : chooseTicks(losses))
    text += fmt::format("<path d=\"M{0} {1:.1f}h{2}\" stroke=\"#dddddd\"/><text x=\"{3}\" y=\"{4:.1f}\" "
                        "text-anchor=\"end\">{5:.6g}</text>\n",
                        left, toY(loss), width, left - 6, toY(loss) + 4, loss);
  for (const auto &[step, label] : labels)
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", toX(step), top + height + 16,
                        label);
  return text;
}

std::string escapedForSvg(const std::string &text) {
  static const std::string unknown = "\xEF\xBF\xBD";
  const std::string valid =
      nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
          .get<std::string>();
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

/// The colours of curves: dark enough for thin lines and text on white, and distinct in hue and lightness.
static constexpr std::array colours = {"#0072b2", "#c44e00", "#00805e", "#aa3377",
                                       "#4b3fa8", "#8a6d00", "#0f8aa0", "#555555"};
static const char *chooseColour(size_t curve) { return colours[curve % colours.size()]; }
/// Dashes of lines whose colour is used again.
static std::string chooseDashes(size_t curve) {
  const size_t round = curve / colours.size();
  return round ? fmt::format(" stroke-dasharray=\"{} 3\"", 3 * round) : "";
}

/// The maximum width of a name next to the frames, in ASCII characters.
static constexpr size_t mostOfName = 56;

/// Characters outside ASCII may be twice as wide.
std::string shortened(const std::string &name) {
  std::vector<std::string> characters;
  for (const char c : name)
    if (characters.empty() || (static_cast<unsigned char>(c) & 0xC0) != 0x80)
      characters.emplace_back(1, c);
    else
      characters.back() += c;
  const auto countCells = [](const std::string &character) { return character.size() > 1 ? size_t{2} : size_t{1}; };
  size_t width = 0;
  for (const std::string &character : characters)
    width += countCells(character);
  if (width <= mostOfName)
    return name;
  std::string head, tail;
  size_t first = 0, last = characters.size();
  for (size_t room = mostOfName / 2 - 1; room >= countCells(characters[first]); head += characters[first++])
    room -= countCells(characters[first]);
  for (size_t room = mostOfName / 2 - 1; room >= countCells(characters[last - 1]); tail = characters[--last] + tail)
    room -= countCells(characters[last - 1]);
  return head + "…" + tail;
}

std::string drawn(const Panel &panel, const std::vector<CurvePoint> &line, const std::vector<CurvePoint> &dots,
                  size_t index) {
  const std::string colour = chooseColour(index);
  std::string text = fmt::format(R"(<polyline fill="none" stroke="{}"{} points=")", colour, chooseDashes(index));
  for (const CurvePoint &p : line)
    text += panel.formatPoint(p) + " ";
  text += "\"/>\n";
  for (const CurvePoint &p : dots)
    text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", panel.toX(p.at),
                        panel.toY(p.loss), colour);
  return text;
}

std::string legend(const std::string &name, const std::string &after, size_t index, size_t count) {
  const std::string shown = shortened(name);
  const double pitch = std::min(16.0, 240.0 / static_cast<double>(count)), right = Panel::left + Panel::width - 8;
  const double y = 30 + pitch * static_cast<double>(index + 1);
  return fmt::format(
      "<path d=\"M{:g} {:.1f}h20\" stroke=\"{}\"{}/>"
      "<text x=\"{:g}\" y=\"{:.1f}\" font-size=\"{:.3g}\" text-anchor=\"end\" fill=\"{}\">{}{}{}</text>\n",
      right - 20, y - pitch / 4, chooseColour(index), chooseDashes(index), right - 26, y, pitch * 0.75,
      chooseColour(index), shown == name ? "" : "<title>" + escapedForSvg(name) + "</title>", escapedForSvg(shown),
      escapedForSvg(after));
}

std::string chartTitle(const std::string &text, double y) {
  return fmt::format("<text x=\"{}\" y=\"{:g}\">{}</text>\n", Panel::left, y, escapedForSvg(text));
}

std::string wrapChart(double height, const std::string &body) {
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"650\" height=\"{0:g}\" "
                     "font-family=\"sans-serif\" font-size=\"12\">\n"
                     "<rect width=\"650\" height=\"{0:g}\" fill=\"#ffffff\"/>\n{1}</svg>\n",
                     height, body);
}

} // namespace kiln
