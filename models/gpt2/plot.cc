// From logs to a picture.

#include "models/gpt2/plot.h"
#include "models/data/files.h"
#include "models/train/curves.h"

namespace kiln {

void plot(const PlotOptions &options) {
  std::vector<Curve> curves;
  for (const std::string &run : options.runs)
    curves.push_back(readCurve(run));
  const std::string picture = pictureOf(curves);
  writeSynced(options.out, {{picture.data(), std::ssize(picture)}});
}

} // namespace kiln
