// kiln-sim: runs a kernel of a PTX file without a GPU, and reports its errors.
//
//     kiln-sim scale.ptx --kernel scale --grid 4 --block 128 --args 'x.npy, f32[500]->y.npy, 500, 2.5'
//
// Arguments in the order of the kernel's parameters:
//     x.npy             the array's address; its contents before the launch
//     x.npy->y.npy      as above; its contents after the launch go to y.npy
//     f32[4x500]->y.npy zeros; the contents after the launch go to y.npy
//     5, 2.5, true      a number of the parameter's type
//     bf16(2.5)         a number of another type of the same size
//     tensormap 0 f16 dims=64x32 strides=128 box=32x8
//                       a tensor map of argument 0's array (arguments.cc), as the parameter or in memory
//
// Exit status: 0; 1 for errors of the kernel; 2, 3, 4 as in all programs.

#include "runtime/Files.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Launch.h"
#include "runtime/simulator/Report.h"
#include "runtime/simulator/ptx/Parser.h"
#include "tools/files/Files.h"
#include "tools/kiln-sim/arguments.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

using namespace kiln;
using namespace kiln::simulator;

namespace {
struct Options {
  std::string file, kernel, args, names;
  std::vector<int> grid = {1}, block = {1};
  uint32_t shared = 0;
  std::string report;
  bool reports = false;
  Schedule schedule;
};
} // namespace

// --- The program ---------------------------------------------------------------------------------------------------

static Extents extentsOf(const std::vector<int> &numbers, const char *flag) {
  if (numbers.empty() || numbers.size() > 3)
    throw Error(fmt::format("expected one to three extents after {}, but got {}", flag, numbers.size()));
  Extents extents = {1, 1, 1};
  std::copy(numbers.begin(), numbers.end(), extents.begin());
  return extents;
}

/// The name of a module's only kernel.
static std::string onlyKernel(const ptx::Module &module) {
  std::string name, names;
  for (const ptx::Function &function : module.functions)
    if (function.isEntry) {
      name = function.name;
      names += (names.empty() ? "" : ", ") + name;
    }
  if (name != names || name.empty())
    throw Error(
        fmt::format("expected --kernel to name one of the file's kernels: {}", names.empty() ? "it has none" : names));
  return name;
}

/// Runs the kernel; prints its errors, and the report if requested. Returns whether there were errors.
static bool runKernel(const Options &options, const Program &program, const Extents &grid, const Extents &block,
                      uint32_t shared, const std::vector<char> &parameters, const Memory &memory) {
  Findings findings;
  Metrics metrics(program);
  launch(program, grid, block, shared, parameters.data(), memory, findings, options.schedule,
         options.reports ? &metrics : nullptr);
  std::string text = textOf(findings, program);
  if (options.reports && options.report.empty())
    text += reportTable(program, metrics);
  else if (options.reports)
    writeOutput(options.report, reportPicture(program, metrics));
  writeResult(text);
  return !findings.empty();
}

static int simulate(const Options &options) {
  const auto module = std::make_shared<ptx::Module>(ptx::parse(tools::readInput(options.file)));
  Memory memory;
  const auto program = buildProgram(module, options.kernel.empty() ? onlyKernel(*module) : options.kernel, memory,
                                    options.names.empty() ? "" : tools::readInput(options.names));
  const std::vector<Argument> arguments = parseArguments(*program, options.args, memory);
  std::vector<char> block(program->parameterBytes);
  for (size_t i = 0; i < arguments.size(); ++i)
    std::memcpy(block.data() + program->parameters[i].offset,
                arguments[i].bytes.empty() ? reinterpret_cast<const char *>(&arguments[i].bits)
                                           : arguments[i].bytes.data(),
                std::min<size_t>(std::max<size_t>(8, arguments[i].bytes.size()), program->parameters[i].bytes));
  const bool isWrong = runKernel(options, *program, extentsOf(options.grid, "--grid"),
                                 extentsOf(options.block, "--block"), options.shared, block, memory);
  for (const Argument &argument : arguments)
    if (argument.memory && !argument.output.empty())
      writeOutput(argument.output, fileOf(argument));
  return isWrong ? 1 : 0;
}

static int run(int argc, const char *const *argv) {
  Options options;
  CLI::App app(
      "Runs a kernel of a PTX file without a GPU, and reports its errors.\n"
      "Example: kiln-sim scale.ptx --kernel scale --grid 4 --block 128 --args 'x.npy, f32[500]->y.npy, 500, 2.5'",
      "kiln-sim");
  app.add_option("file", options.file, "PTX text");
  app.add_option("--kernel", options.kernel, "the kernel's name; not needed when the file has one");
  app.add_option("--grid", options.grid, "blocks: 4 or 4,2,1")->delimiter(',');
  app.add_option("--block", options.block, "threads of a block: 128 or 32,4")->delimiter(',');
  app.add_option("--shared", options.shared, "bytes of dynamic shared memory");
  app.add_option("--args", options.args, "arguments: x.npy, x.npy->out.npy, f32[4x500]->out.npy, 5, 2.5");
  app.add_option(
      "--names", options.names,
      "a file of lines '// kiln.shared KERNEL OFFSET BYTES NAME', with names of parts of shared memory for findings "
      "by, as those in the PTX");
  for (const Setting &setting : settings())
    app.add_option_function<std::string>(
        fmt::format("--{}", setting.name),
        [&options, &setting](const std::string &value) { setting.set(options.schedule, value); }, setting.help);
  CLI::Option *const picture =
      app.add_option("--report", options.report,
                     "print instructions, wavefronts and sectors by line; with a name that ends "
                     "in .svg, draw where wavefronts and sectors are wasted")
          ->expected(0, 1);
  app.add_option("--threads", options.schedule.threads, "threads of this machine; 0: all cores")
      ->check(CLI::Range(0, 1024));
  app.set_version_flag("--version", versionText("kiln-sim"), "print the version of Kiln");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &asked) {
    writeResult(dynamic_cast<const CLI::CallForVersion *>(&asked) ? asked.what() + std::string("\n") : app.help());
    return 0;
  } catch (const CLI::ParseError &error) {
    throw Error(error.what());
  }
  options.reports = picture->count() > 0;
  if (!options.report.empty() && !options.report.ends_with(".svg"))
    throw Error(fmt::format("expected a name that ends in .svg after --report, but got '{}'", options.report));
  if (options.file.empty())
    throw Error("kiln-sim requires a file of PTX text");
  return simulate(options);
}

int main(int argc, char **argv) {
  return runProgram("kiln-sim", [=] { return run(argc, argv); });
}
