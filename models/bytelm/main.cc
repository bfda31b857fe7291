// bytelm: trains a byte-level model, samples from it, prints its parameters, and plots its losses. Exit statuses are
// those of gpt2.

#include "models/bytelm/commands.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"

using namespace kiln;

namespace {
/// The function of each command.
struct Run {
  void operator()(const bytelm::TrainOptions &options) const { bytelm::train(options); }
  void operator()(const bytelm::SampleOptions &options) const { bytelm::sample(options); }
  void operator()(const bytelm::InfoOptions &options) const { bytelm::info(options); }
  void operator()(const PlotOptions &options) const { plot(options); }
};
} // namespace

int main(int argc, char **argv) {
  return runProgram("bytelm", [=] {
    if (const std::optional<bytelm::Command> command = bytelm::parseCommand(argc, argv, versionText("bytelm")))
      std::visit(Run(), *command);
    return 0;
  });
}
