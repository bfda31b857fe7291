// From logs to a picture.

#include "models/train/plot.h"
#include "models/train/curves.h"
#include "models/train/flags.h"
#include "runtime/OutputFile.h"

namespace kiln {

CLI::App *addPlot(CLI::App &app, PlotOptions &o) {
  CLI::App *plot = app.add_subcommand("plot", "draw the loss curves of runs");
  plot->add_option("runs", o.runs, "folders of runs; the others are compared with the first")->required();
  plot->add_option("--out,-o", o.out, "the picture (SVG); '-' is standard output")->required();
  return plot;
}

void plot(const PlotOptions &options) {
  std::vector<Curve> curves;
  for (const std::string &run : options.runs)
    curves.push_back(readCurve(run));
  writeOutput(options.out, pictureOf(curves));
}

} // namespace kiln
