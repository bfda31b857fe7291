// kiln-sim: runs a kernel of a PTX file without a GPU, and says what it did wrong.
//
//     kiln-sim scale.ptx --kernel scale --grid 4 --block 128 --args 'x.npy, f32[500]->y.npy, 500, 2.5'
//
// Arguments in the order of the kernel's parameters:
//     x.npy             the array's address; its contents before the launch
//     x.npy->y.npy      the same, and what it holds afterwards goes to y.npy
//     f32[4x500]->y.npy zeros, and what they have become
//     5, 2.5            a number, of as many bytes as the parameter has
//
// Exit status: 0; 1 when the kernel did something wrong; 2, 3, 4 as all programs have.

#include "runtime/Npy.h"
#include "runtime/Streams.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Launch.h"
#include "runtime/simulator/ptx/Parser.h"

#include <CLI/CLI.hpp>
#include <bit>
#include <charconv>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

using namespace kiln;
using namespace kiln::simulator;

namespace {
struct Options {
  std::string file, kernel, args, order = "forward", delivery = "late";
  std::vector<int> grid = {1}, block = {1};
  uint32_t shared = 0;
  std::string checks = "all";
  Schedule schedule;
};

/// An argument: an array on the simulated device, or a number.
struct Argument {
  NpyArray array;
  void *memory = nullptr; // null for a number
  std::string output;     // where the array goes afterwards, if anywhere
  uint64_t bits = 0;
};
} // namespace

// --- Arguments -----------------------------------------------------------------------------------------------------

static std::vector<std::string> split(const std::string &text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) {
    const size_t begin = part.find_first_not_of(" \t"), end = part.find_last_not_of(" \t");
    parts.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
  }
  return parts;
}

/// Zeros, from `f32[4x500]`.
static NpyArray zerosNamed(const std::string &text) {
  const size_t bracket = text.find('[');
  NpyArray array;
  array.type = typeNamed(text.substr(0, bracket));
  int64_t count = 1;
  for (const std::string &extent : split(text.substr(bracket + 1, text.size() - bracket - 2), 'x')) {
    int64_t value = -1;
    const auto [stop, failure] = std::from_chars(extent.data(), extent.data() + extent.size(), value);
    if (failure != std::errc() || stop != extent.data() + extent.size() || value < 0 ||
        __builtin_mul_overflow(count, value, &count) || count > int64_t{1} << 36)
      throw Error(fmt::format("expected extents such as 4x500 in --args, but got '{}'", text));
    array.extents.push_back(value);
  }
  array.data.resize(static_cast<size_t>(count * bytesOf(array.type)));
  return array;
}

/// A number for a parameter of `bytes` bytes: with a dot or an exponent a float.
static uint64_t numberNamed(const std::string &text, uint32_t bytes) {
  const char *const end = text.data() + text.size();
  int64_t integer = 0;
  if (const auto [stop, failure] = std::from_chars(text.data(), end, integer); failure == std::errc() && stop == end)
    return static_cast<uint64_t>(integer);
  double real = 0;
  if (const auto [stop, failure] = std::from_chars(text.data(), end, real); failure != std::errc() || stop != end)
    throw Error(
        fmt::format("expected a .npy file, zeros such as f32[64]->out.npy, or a number in --args, but got '{}'", text));
  return bytes == 4 ? std::bit_cast<uint32_t>(static_cast<float>(real)) : std::bit_cast<uint64_t>(real);
}

static Argument parseArgument(const std::string &text, uint32_t bytes, Memory &memory) {
  Argument argument;
  const size_t arrow = text.find("->");
  const std::string input = text.substr(0, arrow);
  if (arrow != std::string::npos)
    argument.output = text.substr(arrow + 2);
  if (input.ends_with(".npy"))
    argument.array = readNpy(input);
  else if (input.ends_with(']') && input.find('[') != std::string::npos)
    argument.array = zerosNamed(input);
  else {
    argument.bits = numberNamed(text, bytes);
    return argument;
  }
  argument.memory = memory.allocate(static_cast<int64_t>(argument.array.data.size()));
  std::copy(argument.array.data.begin(), argument.array.data.end(), static_cast<char *>(argument.memory));
  argument.bits = reinterpret_cast<uint64_t>(argument.memory);
  return argument;
}

static std::vector<Argument> parseArguments(const Program &program, const std::string &text, Memory &memory) {
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() != program.parameters.size()) {
    std::string names;
    for (const Parameter &parameter : program.parameters)
      names += fmt::format("{}{} ({} bytes)", names.empty() ? "" : ", ", parameter.name, parameter.bytes);
    throw Error(fmt::format("kernel '{}': expected {} arguments in --args, {}, but got {}", program.name,
                            program.parameters.size(), names, parts.size()));
  }
  std::vector<Argument> arguments;
  for (size_t i = 0; i < parts.size(); ++i)
    arguments.push_back(parseArgument(parts[i], program.parameters[i].bytes, memory));
  return arguments;
}

// --- The program ---------------------------------------------------------------------------------------------------

static std::string readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file.is_open() && file.peek() != std::ifstream::traits_type::eof())
    text << file.rdbuf();
  if (!file.is_open() || file.bad())
    throw Error(fmt::format("expected to read '{}', but could not: {}", path, std::strerror(errno)), Fault::device);
  return text.str();
}

static Extents extentsOf(const std::vector<int> &numbers, const char *flag) {
  if (numbers.empty() || numbers.size() > 3)
    throw Error(fmt::format("expected one to three extents after {}, but got {}", flag, numbers.size()));
  Extents extents = {1, 1, 1};
  std::copy(numbers.begin(), numbers.end(), extents.begin());
  return extents;
}

/// The name of the only kernel of a module, when there is one alone.
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

static int simulate(const Options &options) {
  const auto module = std::make_shared<ptx::Module>(ptx::parse(readText(options.file)));
  Memory memory;
  const auto program = buildProgram(module, options.kernel.empty() ? onlyKernel(*module) : options.kernel, memory);
  const std::vector<Argument> arguments = parseArguments(*program, options.args, memory);
  std::vector<char> block(program->parameterBytes);
  for (size_t i = 0; i < arguments.size(); ++i)
    std::memcpy(block.data() + program->parameters[i].offset, &arguments[i].bits,
                std::min<size_t>(8, program->parameters[i].bytes));
  Findings findings;
  launch(*program, extentsOf(options.grid, "--grid"), extentsOf(options.block, "--block"), options.shared, block.data(),
         memory, findings, options.schedule);
  for (const Argument &argument : arguments) {
    if (!argument.memory || argument.output.empty())
      continue;
    NpyArray after = argument.array;
    std::memcpy(after.data.data(), argument.memory, after.data.size());
    std::ofstream file(argument.output, std::ios::binary);
    file << npyFile(after);
    if (!file.flush())
      throw Error(fmt::format("expected to write '{}', but could not: {}", argument.output, std::strerror(errno)),
                  Fault::device);
  }
  std::string text;
  for (const Finding &finding : findings.list())
    text += fmt::format("{}: {}: {}{}\n", program->textOf(finding.place), nameOf(finding.check), finding.text,
                        finding.count > 1 ? fmt::format(", {} times in all", finding.count) : "");
  writeResult(text);
  return text.empty() ? 0 : 1;
}

static int runProgram(int argc, char **argv) {
  Options options;
  CLI::App app("Runs a kernel of a PTX file without a GPU, and says what it did wrong.\n"
               "Example: kiln-sim scale.ptx --grid 4 --block 128 --args 'x.npy, f32[500]->y.npy, 500, 2.5'",
               "kiln-sim");
  app.add_option("file", options.file, "PTX text")->required();
  app.add_option("--kernel", options.kernel, "the kernel's name; not needed when the file has one");
  app.add_option("--grid", options.grid, "blocks: 4 or 4,2,1")->delimiter(',');
  app.add_option("--block", options.block, "threads of a block: 128 or 32,4")->delimiter(',');
  app.add_option("--shared", options.shared, "bytes of dynamic shared memory");
  app.add_option("--args", options.args, "arguments: x.npy, x.npy->out.npy, f32[4x500]->out.npy, 5, 2.5");
  app.add_option("--order", options.order, "in which order blocks and warps run")
      ->check(CLI::IsMember({"forward", "reverse", "random"}));
  app.add_option("--delivery", options.delivery, "when asynchronous copies land")
      ->check(CLI::IsMember({"late", "early", "random"}));
  app.add_option("--check", options.checks, "what to look for: all, -race, bounds,alignment, ...");
  app.add_option("--seed", options.schedule.seed, "of the random orders");
  app.add_option("--threads", options.schedule.threads, "threads of this machine; 0: all cores")
      ->check(CLI::Range(0, 1024));
  app.add_option("--steps", options.schedule.mostSteps, "give up after so many instructions of a warp; 0: never")
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
    options.schedule.order = options.order == "forward"   ? Order::forward
                             : options.order == "reverse" ? Order::reverse
                                                          : Order::random;
    options.schedule.delivery = options.delivery == "late"    ? Delivery::late
                                : options.delivery == "early" ? Delivery::early
                                                              : Delivery::random;
    options.schedule.checks = Checks::named(options.checks);
    return simulate(options);
  } catch (const CLI::CallForHelp &) {
    try {
      writeResult(app.help());
      return 0;
    } catch (const std::exception &error) {
      return report("kiln-sim", error);
    }
  } catch (const CLI::ParseError &error) {
    return report("kiln-sim", Error(error.what()));
  } catch (const std::exception &error) {
    return report("kiln-sim", error);
  }
}

int main(int argc, char **argv) {
  openStandardStreams();
  return runProgram(argc, argv);
}
