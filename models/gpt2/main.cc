// gpt2: trains GPT-2 on the bytes of a text file, samples from it, and says what a model costs. Exit status: 0 when all
// went well, 2 for a mistake of the caller's, 3 for one of the machine's or file system's, 4 for one of Kiln's own.

#include "models/gpt2/info.h"
#include "models/gpt2/sampler.h"
#include "models/gpt2/trainer.h"

#include <csignal>
#include <fmt/format.h>

using namespace kiln;

int main(int argc, char **argv) {
  std::signal(SIGXFSZ, SIG_IGN); // so that a write beyond the limit on a file's size fails, and is told as any other
  try {
    const std::optional<Command> command = parseCommand(argc, argv);
    if (!command)
      return 0;
    if (const auto *options = std::get_if<TrainOptions>(&*command))
      train(*options);
    if (const auto *options = std::get_if<SampleOptions>(&*command))
      sample(*options);
    if (const auto *options = std::get_if<InfoOptions>(&*command))
      info(*options);
    return 0;
  } catch (const Error &error) {
    fmt::print(stderr, "gpt2: error: {}\n", error.what());
    return error.fault == Fault::user ? 2 : error.fault == Fault::device ? 3 : 4;
  } catch (const std::exception &error) {
    fmt::print(stderr, "gpt2: internal error: {}\n", error.what());
    return 4;
  }
}
