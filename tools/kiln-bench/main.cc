// kiln-bench: how fast Kiln is, beside a peer or beside what the machine can do at best, in the same run.
//
//     kiln-bench matmul|attention|layernorm|views|step|launch|compile|ptxas|simulator
//         [--device D] [--dtype T] [--precision P] [--threads N] [--json F] [--quick]

#include "dialect/dsl/Nearest.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/machine.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <omp.h>

using namespace kiln;

/// The machine's own limits, in the units that the other rows use.
static void benchMachine(bench::Setting &setting) {
  setting.report.section("machine");
  const int64_t megabytes = setting.quick ? 1 : 256, count = megabytes << 18;
  Tensor from = bench::zeroTensor(setting, {count}), to = bench::zeroTensor(setting, {count});
  std::vector<bench::Contender> contenders = {bench::copyOf(setting, from, to)};
  const auto units = setting.isHost() ? bench::coreUnits() : std::vector<bench::CoreUnit>();
  for (const bench::CoreUnit &unit : units)
    contenders.emplace_back([&] { bench::runPeak(unit, setting.threads); });
  const std::vector<double> seconds = setting.measure(contenders);
  for (size_t i = 0; i < units.size(); ++i)
    setting.report.add({.bench = "machine",
                        .shape = units[i].name,
                        .metric = "gflops",
                        .value = bench::runPeak(units[i], setting.threads) / seconds[1 + i] / 1e9});
  setting.report.add({.bench = "machine",
                      .shape = fmt::format("copy {} MB", megabytes),
                      .metric = "gb_per_s",
                      .value = 8.0 * static_cast<double>(count) / seconds[0] / 1e9});
}

/// A benchmark by its name, and the types of operands that it measures besides f32.
struct Bench {
  std::string name, text;
  void (*run)(bench::Setting &);
  std::vector<Type> types = {};
};

static const Bench benches[] = {
    {"matmul", "products of a GPT-2 124M step, beside oneDNN", bench::benchMatmul, {bf16, f16, i8}},
    {"attention", "causal flash attention, beside the product rate", bench::benchAttention, {bf16, f16}},
    {"layernorm",
     "LayerNorm, cross-entropy, GELU, embedding, AdamW, beside a copy",
     bench::benchLayerNorm,
     {bf16, f16}},
    {"views", "rows by the stride of their elements, beside stride 1; reshapes and checks, beside a copy",
     bench::benchViews},
    {"step", "GPT-2 124M training steps, beside the multiply-add peak", bench::benchStep, {bf16, f16}},
    {"launch", "host time of a launch, beside its budget", bench::benchLaunch},
    {"compile", "compile times, cold and from disk", bench::benchCompile},
    {"ptxas", "registers and spills of the kernels of a step on a GPU, as ptxas says", bench::benchPtxas},
    {"simulator", "the simulator of PTX, its checks off and on, beside budgets", bench::benchSimulator},
};

/// Throws Error for a word that is none of `known`, with the one most like it.
[[noreturn]] static void rejectWord(const std::string &kind, const std::string &word,
                                    const std::vector<std::string> &known) {
  const std::string hint = didYouMean(word, known);
  throw Error(fmt::format("unknown {} '{}'{}", kind, word, hint.empty() ? "; see --help" : hint));
}

static const Bench &benchNamed(const std::string &name) {
  std::vector<std::string> names;
  for (const Bench &bench : benches) {
    if (bench.name == name)
      return bench;
    names.push_back(bench.name);
  }
  rejectWord("benchmark", name, names);
}

/// The type named `name`; throws Error for one that `bench` does not measure.
static Type typeFor(const Bench &bench, const std::string &name) {
  const Type type = typeNamed(name);
  std::string types = "f32";
  for (Type known : bench.types)
    types += std::string(", ") + nameOf(known);
  if (type != f32 && std::find(bench.types.begin(), bench.types.end(), type) == bench.types.end())
    throw Error(fmt::format("expected --dtype of {} to be {}{}, but got '{}'", bench.name,
                            bench.types.empty() ? "" : "one of ", types, name));
  return type;
}

static void runBench(const Bench &bench, const std::string &name, int threads, const std::string &json, bool quick,
                     std::optional<Precision> precision, const std::string &typeName) {
  const Type type = typeFor(bench, typeName);
  std::shared_ptr<Device> device = Device::open(name);
  if (threads > 0) {
    device->setThreads(threads);
    setCompileThreads(threads);
  }
  threads = device->threads();
  omp_set_num_threads(threads); // the peer's
  bench::Report report(threads, json);
  writeResult(fmt::format("kiln-bench {} on {} ({}), {} thread{}\n", bench.name, name, device->target().name, threads,
                          threads == 1 ? "" : "s"));
  bench::Setting setting{device, threads, report, quick, precision, type};
  if (bench.name != "launch" && bench.name != "compile" && bench.name != "ptxas" && bench.name != "simulator")
    benchMachine(setting);
  bench.run(setting);
  report.writeJson();
}

static void runProgram(int argc, char **argv) {
  std::string name, deviceName = "cpu", type = "f32", precision, json, footer = "benchmarks:\n";
  int threads = 0;
  bool quick = false;
  for (const Bench &bench : benches)
    footer += fmt::format("  {:<10} {}\n", bench.name, bench.text);
  CLI::App app("kiln-bench: Kiln beside its peers and beside the machine's limits", "kiln-bench");
  app.add_option("benchmark", name, "which one");
  app.add_option("--device", deviceName, "the device that Kiln runs on")->capture_default_str();
  app.add_option("--dtype", type, "of operands: f32, bf16, f16 or i8")->capture_default_str();
  app.add_option("--precision", precision, "of products of f32: ieee, tf32 or tf32x3 (what suits the device)");
  CLI::Option *limit =
      app.add_option("--threads", threads, "threads of Kiln and of the peer (default: KILN_THREADS, else all cores)");
  app.add_option("--json", json, "also write the rows to this file");
  app.add_flag("--quick", quick, "small shapes, measured once: whether it works, not how fast");
  app.set_version_flag("--version", versionText("kiln-bench"), "print which Kiln this is");
  app.footer(footer);
  app.allow_extras();
  try {
    app.parse(argc, argv);
    for (const std::string &word : app.remaining())
      rejectWord(word.starts_with("-") ? "flag" : "argument", word.substr(0, word.find('=')),
                 {"--device", "--dtype", "--precision", "--threads", "--json", "--quick", "--version", "--help"});
    if (limit->count() && threads < 1)
      throw Error(fmt::format("expected --threads to be at least 1, but got {}", threads));
    if (name.empty())
      throw Error("expected a benchmark, such as 'kiln-bench matmul'; see --help");
    runBench(benchNamed(name), deviceName, threads, json, quick,
             precision.empty() ? std::nullopt : std::optional(precisionNamed(precision)), type);
  } catch (const CLI::CallForHelp &) {
    writeResult(app.help());
  } catch (const CLI::CallForVersion &version) {
    writeResult(version.what() + std::string("\n"));
  } catch (const CLI::ParseError &error) {
    throw Error(error.what());
  }
}

int main(int argc, char **argv) {
  openStandardStreams();
  try {
    runProgram(argc, argv);
    return 0;
  } catch (const std::exception &error) {
    return report("kiln-bench", error);
  }
}
