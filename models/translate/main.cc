// translate: trains a translation model, translates lines, computes BLEU, prints the model's parameters, and plots its
// losses. Exit statuses are those of gpt2.

#include "models/translate/commands.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"

using namespace kiln;

int main(int argc, char **argv) {
  openStandardStreams();
  try {
    const std::optional<translate::Command> command = translate::parseCommand(argc, argv, versionText("translate"));
    if (!command)
      return 0;
    if (const auto *options = std::get_if<translate::TrainOptions>(&*command))
      translate::train(*options);
    if (const auto *options = std::get_if<translate::TranslateOptions>(&*command))
      translate::translate(*options);
    if (const auto *options = std::get_if<translate::EvalOptions>(&*command))
      translate::eval(*options);
    if (const auto *options = std::get_if<translate::InfoOptions>(&*command))
      translate::info(*options);
    if (const auto *options = std::get_if<PlotOptions>(&*command))
      plot(*options);
    return 0;
  } catch (const std::exception &error) {
    return report("translate", error);
  }
}
