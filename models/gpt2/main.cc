// gpt2: trains GPT-2, samples from it, evaluates it, prints the cost of a model, plots losses, and reads and writes
// llm.c's files. Exit status: 0 for success, 1 if `test` found a difference, 2 for a user's error, 3 for an error of
// the machine or file system, 4 for an internal error.

#include "models/gpt2/commands.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"

using namespace kiln;

namespace {
/// The function of each command, and the exit status.
struct Run {
  int operator()(const TrainOptions &options) const { return train(options), 0; }
  int operator()(const SampleOptions &options) const { return sample(options), 0; }
  int operator()(const EvalOptions &options) const { return evaluate(options), 0; }
  int operator()(const TestOptions &options) const { return compare(options) ? 0 : 1; }
  int operator()(const InfoOptions &options) const { return info(options), 0; }
  int operator()(const PlotOptions &options) const { return plot(options), 0; }
  int operator()(const ImportOptions &options) const { return importModel(options), 0; }
  int operator()(const ExportOptions &options) const { return exportModel(options), 0; }
  int operator()(const ProfileOptions &options) const { return profile(options), 0; }
};
} // namespace

int main(int argc, char **argv) {
  return runProgram("gpt2", [=] {
    const std::optional<Command> command = parseCommand(argc, argv, versionText("gpt2"));
    return command ? std::visit(Run(), *command) : 0;
  });
}
