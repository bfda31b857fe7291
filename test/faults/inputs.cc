// fault-inputs: passes damaged inputs to the code that reads them, and reports those that it did not handle.
//
//     fault-inputs checkpoint|json|module|cache|image|array|ptx|command --seed S --from A --to B [--sources FOLDER]
//     [--show]
//
// Prints `at N` before case N, `wrong N: …` when something was wrong with it, `done` at the end. A case is bound to 20
// seconds of processor time; a crash or SIGPROF is the fault of the last case named.

#include "test/faults/inputs.h"
#include "test/temporary_folder.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <sys/resource.h>
#include <sys/time.h>

using namespace kiln;
using namespace kiln::faults;

static constexpr int longest = 20; // seconds

static std::unique_ptr<Inputs> inputsOf(const std::string &kind, const std::string &folder,
                                        const std::string &sources) {
  if (kind == "checkpoint")
    return checkpointInputs(folder);
  if (kind == "json")
    return jsonInputs();
  if (kind == "module")
    return moduleInputs(sources);
  if (kind == "cache")
    return cacheInputs(folder);
  if (kind == "image")
    return imageInputs();
  if (kind == "array")
    return arrayInputs(folder);
  if (kind == "ptx")
    return ptxInputs(sources);
  if (kind == "command")
    return commandInputs();
  throw Error("expected a kind out of checkpoint, json, module, cache, image, array, ptx, command, but got '" + kind +
              "'");
}

static void runCases(Inputs &inputs, uint64_t seed, uint64_t from, uint64_t to) {
  for (uint64_t number = from; number < to; ++number) {
    std::printf("at %llu\n", static_cast<unsigned long long>(number));
    std::fflush(stdout);
    const itimerval limit = {{0, 0}, {longest, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    Chance chance(seed * 1'000'003 + number);
    std::string complaint = inputs.run(chance);
    std::replace(complaint.begin(), complaint.end(), '\n', ' ');
    if (!complaint.empty())
      std::printf("wrong %llu: %s\n", static_cast<unsigned long long>(number), complaint.substr(0, 500).c_str());
  }
  std::puts("done");
}

int main(int argc, char **argv) {
  std::string kind, sources;
  uint64_t seed = 1, from = 0, to = 100;
  bool showing = false;
  CLI::App app("gives damaged inputs to the code that reads them", "fault-inputs");
  app.add_option("kind", kind)->required();
  app.add_option("--seed", seed);
  app.add_option("--from", from);
  app.add_option("--to", to);
  app.add_option("--sources", sources, "the folder with .mlir and .ptx files");
  app.add_flag("--show", showing, "print the inputs, too");
  CLI11_PARSE(app, argc, argv);
  try {
    const TemporaryFolder folder;
    const std::unique_ptr<Inputs> inputs = inputsOf(kind, folder.path, sources);
    inputs->showing = showing;
    runCases(*inputs, seed, from, to);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "fault-inputs: %s\n", error.what());
    return 1;
  }
}
