// gpt2: trains GPT-2, samples from it, evaluates it, prints the cost of a model, plots losses, and reads and writes
// llm.c's files. Exit status: 0 for success, 1 if `test` found a difference, 2 for a user's error, 3 for an error of
// the machine or file system, 4 for an internal error.

#include "models/gpt2/eval.h"
#include "models/gpt2/exchange.h"
#include "models/gpt2/info.h"
#include "models/gpt2/profile.h"
#include "models/gpt2/sample.h"
#include "models/gpt2/test.h"
#include "models/gpt2/train.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"

using namespace kiln;

int main(int argc, char **argv) {
  openStandardStreams();
  try {
    const std::optional<Command> command = parseCommand(argc, argv, versionText("gpt2"));
    if (!command)
      return 0;
    if (const auto *options = std::get_if<TrainOptions>(&*command))
      train(*options);
    if (const auto *options = std::get_if<SampleOptions>(&*command))
      sample(*options);
    if (const auto *options = std::get_if<EvalOptions>(&*command))
      evaluate(*options);
    if (const auto *options = std::get_if<TestOptions>(&*command))
      return compare(*options) ? 0 : 1;
    if (const auto *options = std::get_if<InfoOptions>(&*command))
      info(*options);
    if (const auto *options = std::get_if<PlotOptions>(&*command))
      plot(*options);
    if (const auto *options = std::get_if<ProfileOptions>(&*command))
      profile(*options);
    if (const auto *options = std::get_if<ImportOptions>(&*command))
      importModel(*options);
    if (const auto *options = std::get_if<ExportOptions>(&*command))
      exportModel(*options);
    return 0;
  } catch (const std::exception &error) {
    return report("gpt2", error);
  }
}
