// `plot`: draws logs as a chart.

#include "models/train/plot.h"
#include "models/train/curves.h"
#include "models/train/flags.h"
#include "runtime/Files.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fmt/ranges.h>
#include <thread>

namespace kiln {

CLI::App *addPlot(CLI::App &app, PlotOptions &o) {
  CLI::App *plot = app.add_subcommand("plot", "draw the loss curves of runs");
  plot->add_option("runs", o.runs, "folders of runs; the others are compared with the first")->required();
  plot->add_option("--out,-o", o.out, "the picture (SVG); '-' is standard output")->required();
  plot->add_option("--tag", o.of.tag,
                   "field of the log to draw, such as grad_norm; val_ and its name are drawn as dots")
      ->capture_default_str();
  plot->add_option_function<std::string>(
          "--over",
          [&o](const std::string &text) {
            const auto found = std::find(overNames.begin(), overNames.end(), text);
            if (found == overNames.end())
              throw Error(fmt::format("expected '--over' to be {}, but got '{}'", fmt::join(overNames, ", "), text));
            o.of.over = static_cast<Over>(found - overNames.begin());
          },
          "horizontal axis: steps, seconds, tokens (steps)")
      ->type_name("TEXT");
  plot->add_flag("--follow", o.follow, "redraw while the run continues");
  return plot;
}

static void draw(const PlotOptions &options) {
  std::vector<Curve> curves;
  for (const std::string &run : options.runs)
    curves.push_back(readCurve(run, options.of));
  writeOutput(options.out, pictureOf(curves, options.of));
}

/// Whether a run writes to the folder: it holds a lock until it ends.
static bool isWritten(const std::string &run) { return std::filesystem::exists(run + "/.lock"); }

/// The total size of the logs.
static std::uintmax_t sizeOfLogs(const PlotOptions &options) {
  std::uintmax_t size = 0;
  for (const std::string &run : options.runs) {
    std::error_code none;
    const std::uintmax_t more = std::filesystem::file_size(run + "/log.jsonl", none);
    size += none ? 0 : more;
  }
  return size;
}

void plot(const PlotOptions &options) {
  if (options.follow && options.out == "-")
    throw Error("--follow requires a file for --out, but got '-'");
  std::uintmax_t drawn = 0;
  for (bool goesOn = options.follow; goesOn; std::this_thread::sleep_for(std::chrono::milliseconds(200))) {
    goesOn = std::any_of(options.runs.begin(), options.runs.end(), isWritten);
    const std::uintmax_t size = sizeOfLogs(options);
    if (goesOn && size != drawn && size > 0) // before its first step a run has no points
      draw(options);
    drawn = size;
  }
  draw(options);
}

} // namespace kiln
