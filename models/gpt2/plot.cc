// From logs to a picture.

#include "models/gpt2/plot.h"
#include "models/train/curves.h"
#include "runtime/OutputFile.h"

namespace kiln {

void plot(const PlotOptions &options) {
  std::vector<Curve> curves;
  for (const std::string &run : options.runs)
    curves.push_back(readCurve(run));
  writeOutput(options.out, pictureOf(curves));
}

} // namespace kiln
