// tokens: trains tokenizers, encodes and decodes texts. Exit statuses are those of gpt2.

#include "models/tokens/commands.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"

using namespace kiln;

namespace {
/// One function for each command.
struct Run {
  void operator()(const LearnOptions &options) const { learn(options); }
  void operator()(const EncodeOptions &options) const { encode(options); }
  void operator()(const DecodeOptions &options) const { decode(options); }
  void operator()(const AboutOptions &options) const { tellAbout(options); }
};
} // namespace

int main(int argc, char **argv) {
  return runProgram("tokens", [=] {
    if (const std::optional<TokensCommand> command = parseTokensCommand(argc, argv, versionText("tokens")))
      std::visit(Run(), *command);
    return 0;
  });
}
