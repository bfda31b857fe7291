// translate: trains a translation model, translates lines, computes BLEU, prints the model's parameters, and plots its
// losses. Exit statuses are those of gpt2.

#include "models/translate/commands.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"

using namespace kiln;

namespace {
/// The function of each command.
struct Run {
  void operator()(const translate::TrainOptions &options) const { translate::train(options); }
  void operator()(const translate::TranslateOptions &options) const { translate::translate(options); }
  void operator()(const translate::EvalOptions &options) const { translate::eval(options); }
  void operator()(const translate::InfoOptions &options) const { translate::info(options); }
  void operator()(const PlotOptions &options) const { plot(options); }
};
} // namespace

int main(int argc, char **argv) {
  return runProgram("translate", [=] {
    if (const std::optional<translate::Command> command = translate::parseCommand(argc, argv, versionText("translate")))
      std::visit(Run(), *command);
    return 0;
  });
}
