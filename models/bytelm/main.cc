// bytelm: trains a byte-level model, samples from it, prints its parameters, and plots its losses. Exit statuses are
// those of gpt2.

#include "models/bytelm/commands.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"

using namespace kiln;

int main(int argc, char **argv) {
  openStandardStreams();
  try {
    const std::optional<bytelm::Command> command = bytelm::parseCommand(argc, argv, versionText("bytelm"));
    if (!command)
      return 0;
    if (const auto *options = std::get_if<bytelm::TrainOptions>(&*command))
      bytelm::train(*options);
    if (const auto *options = std::get_if<bytelm::SampleOptions>(&*command))
      bytelm::sample(*options);
    if (const auto *options = std::get_if<bytelm::InfoOptions>(&*command))
      bytelm::info(*options);
    if (const auto *options = std::get_if<PlotOptions>(&*command))
      plot(*options);
    return 0;
  } catch (const std::exception &error) {
    return report("bytelm", error);
  }
}
