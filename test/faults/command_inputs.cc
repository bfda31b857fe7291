// Command lines of gpt2 with odd flags and values, up to the point where the run would begin.

#include "models/gpt2/commands.h"
#include "test/faults/inputs.h"

#include <iostream>

namespace kiln::faults {

namespace {

class CommandInputs : public Inputs {
public:
  CommandInputs() { std::cout.rdbuf(nullptr); } // help goes nowhere

  std::string run(Chance &chance) override {
    std::vector<std::string> words = {"gpt2", chance.oneOf(commands)};
    for (size_t more = chance.below(5); more > 0; --more) {
      words.push_back(word(flags, chance));
      if (chance.below(8))
        words.push_back(word(values, chance));
    }
    std::vector<const char *> argv;
    for (const std::string &text : words)
      argv.push_back(text.c_str());
    std::string line;
    for (const std::string &text : words)
      line += text.substr(0, 60) + " ";
    show(line);
    const std::string complaint = complaintOf([&] { parse(argv); });
    return complaint.empty() ? "" : line + ": " + complaint;
  }

private:
  static void parse(const std::vector<const char *> &argv) {
    const std::optional<Command> command = parseCommand(static_cast<int>(argv.size()), argv.data());
    if (!command)
      return;
    if (const auto *train = std::get_if<TrainOptions>(&*command)) {
      chooseModel(train->model);
      chooseSettings(*train);
    }
    if (const auto *info = std::get_if<InfoOptions>(&*command))
      chooseModel(info->model);
  }

  /// One of `words`, now and then damaged; the C library ends a word at its first zero.
  static std::string word(const std::vector<std::string> &words, Chance &chance) {
    const std::string &plain = chance.oneOf(words);
    return chance.below(3) ? plain : damaged(plain, words, chance).c_str();
  }

  const std::vector<std::string> commands = {"train", "sample", "info", "train", "train", "", "--model", "trian"};
  const std::vector<std::string> flags = {"--data",
                                          "--out",
                                          "--model",
                                          "--layers",
                                          "--heads",
                                          "--width",
                                          "--context",
                                          "--vocab",
                                          "--batch",
                                          "--accumulate",
                                          "--steps",
                                          "--warmup",
                                          "--lr",
                                          "--final-lr",
                                          "--decay",
                                          "--beta1",
                                          "--beta2",
                                          "--clip",
                                          "--seed",
                                          "--keep",
                                          "--evaluate-every",
                                          "--resume",
                                          "--overwrite",
                                          "--save-every",
                                          "--stop-after",
                                          "--device",
                                          "--threads",
                                          "--prompt",
                                          "--tokens",
                                          "--top-k",
                                          "--temperature",
                                          "--buffers",
                                          "--model-dir",
                                          "--batch-size",
                                          "--learning-rate",
                                          "--init",
                                          "-",
                                          "--",
                                          "--=",
                                          "-h=1",
                                          "--lr=",
                                          "--steps=1"};
  const std::vector<std::string> values = {"",
                                           "0",
                                           "1",
                                           "-1",
                                           "2",
                                           "16",
                                           "nano",
                                           "d2",
                                           "text",
                                           "run",
                                           "cpu",
                                           "0.5",
                                           "1e-3",
                                           "1e400",
                                           "nan",
                                           "-inf",
                                           "1e9",
                                           "0x10",
                                           " 1",
                                           "1 ",
                                           "1,2",
                                           "+1",
                                           ".",
                                           "-",
                                           "--",
                                           "=",
                                           "%s",
                                           "\xff",
                                           "\xc3\xa9",
                                           "99999999999999999999",
                                           "9223372036854775807",
                                           "-9223372036854775808",
                                           "18446744073709551615",
                                           "[1",
                                           "{}",
                                           "\n"};
};

} // namespace

std::unique_ptr<Inputs> commandInputs() { return std::make_unique<CommandInputs>(); }

} // namespace kiln::faults
