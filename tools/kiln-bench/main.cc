// kiln-bench: Kiln's speed, compared with a peer or with the machine's peak in the same run.
//
//     kiln-bench matmul|attention|layernorm|views|vmap|step|token|launch|compile|ptxas|static|probe|users|simulator
//         [--device D] [--dtype T] [--precision P] [--threads N] [--json F] [--quick]
//     kiln-bench static [--nvdisasm P] [--triton F] [--ratchet F [--accept]] [--read F]

#include "dialect/dsl/Nearest.h"
#include "models/train/flags.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"
#include "tools/kiln-bench/bench.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>

using namespace kiln;

/// The machine's peak rates, in the units of the other rows.
static void benchMachine(bench::Setting &setting) {
  setting.report.section("machine");
  const int megabytes = setting.quick ? 1 : 256;
  const double copied = 2.0 * megabytes * (1 << 20);
  std::vector<bench::Contender> contenders = {bench::copyOf(setting, copied)};
  const auto units = setting.isHost() ? bench::coreUnits() : std::vector<bench::CoreUnit>();
  for (const bench::CoreUnit &unit : units)
    contenders.emplace_back([&] { bench::runPeak(unit, setting.threads); });
  const std::vector<double> seconds = setting.measure(contenders);
  const auto add = [&](const std::string &shape, const char *metric, double rate) {
    setting.report.add({.bench = "machine", .shape = shape, .metric = metric, .value = rate / 1e9, .dtype = "f32"});
  };
  for (size_t i = 0; i < units.size(); ++i)
    add(units[i].name, "gflops", bench::runPeak(units[i], setting.threads) / seconds[1 + i]);
  add(fmt::format("copy {} MB", megabytes), "gb_per_s", copied / seconds[0]);
}

/// A benchmark, and the operand types that it measures besides f32.
struct Bench {
  std::string name, text;
  void (*run)(bench::Setting &);
  std::vector<Type> types = {};
  bool measuresMachine = true;               // compares with the machine's peak
  const char *device = "cpu", *type = "f32"; // defaults
};

static const Bench benches[] = {
    {"matmul", "matmuls of a GPT-2 124M step, compared with oneDNN", bench::benchMatmul, {bf16, f16, i8}},
    {"attention", "causal flash attention, compared with the rate of matmuls", bench::benchAttention, {bf16, f16}},
    {"layernorm",
     "LayerNorm, cross-entropy, GELU, embedding, AdamW, compared with a copy",
     bench::benchLayerNorm,
     {bf16, f16}},
    {"views", "strided views, compared with stride 1; reshapes and checks, compared with a copy", bench::benchViews},
    {"vmap", "a batch by vmap and by a loop, compared with kernels batched by hand", bench::benchVmap, {}, false},
    {"step", "GPT-2 124M training steps, compared with the multiply-add peak", bench::benchStep, {bf16, f16}},
    {"token", "decoding token 1025 of GPT-2 124M, compared with a copy", bench::benchToken, {bf16, f16}},
    {"launch", "host time of a launch, compared with its budget", bench::benchLaunch, {}, false},
    {"compile", "compile times, cold and from disk", bench::benchCompile, {}, false},
    {"ptxas", "registers and spills of the kernels of a step on a GPU, by ptxas", bench::benchPtxas, {}, false},
    {"static",
     "instructions and traffic of each kernel on a GPU, compared with Triton; predicted time of a step",
     bench::benchStatic,
     {bf16, f16},
     false,
     "simulator:sm_80",
     "bf16"},
    {"probe",
     "times on a GPU that the performance model needs: cold and warm caches, open configs, loops, the L2 rate",
     bench::benchProbe,
     {bf16, f16},
     false,
     "cuda:0",
     "bf16"},
    {"users",
     "instructions per element of user kernels on a GPU, compared with Triton",
     bench::benchUsers,
     {},
     false,
     "simulator:sm_80"},
    {"simulator", "the PTX simulator, with checks off and on, compared with budgets", bench::benchSimulator, {}, false},
};

static const Bench &benchNamed(const std::string &name) {
  std::vector<std::string> names;
  for (const Bench &bench : benches) {
    if (bench.name == name)
      return bench;
    names.push_back(bench.name);
  }
  const std::string hint = didYouMean(name, names);
  throw Error(fmt::format("unknown benchmark '{}'{}", name, hint.empty() ? "; see --help" : hint));
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

namespace {
/// The parsed command line.
struct Wishes : bench::Options {
  std::string device, type, precision, json;
  int threads = 0;
};
} // namespace

static void runBench(const Bench &bench, const Wishes &wishes) {
  const std::string name = wishes.device.empty() ? bench.device : wishes.device;
  const Type type = typeFor(bench, wishes.type.empty() ? bench.type : wishes.type);
  const std::shared_ptr<Device> device = Device::open(name);
  if (wishes.threads > 0) {
    device->setThreads(wishes.threads);
    setCompileThreads(wishes.threads);
  }
  const int threads = device->threads();
  bench::setPeerThreads(threads);
  bench::Report report(bench.name, nameOf(type), threads, wishes.json);
  if (wishes.read.empty())
    writeResult(fmt::format("kiln-bench {} on {} ({}), {} thread{}\n", bench.name, name, device->target().name, threads,
                            threads == 1 ? "" : "s"));
  bench::Setting setting(wishes, device, report);
  if (!wishes.precision.empty())
    setting.precision = precisionNamed(wishes.precision);
  setting.type = type;
  if (bench.measuresMachine)
    benchMachine(setting);
  bench.run(setting);
  report.writeJson();
}

static int run(int argc, const char *const *argv) {
  std::string name, footer = "benchmarks:\n";
  Wishes wishes;
  for (const Bench &bench : benches)
    footer += fmt::format("  {:<10} {}\n", bench.name, bench.text);
  CLI::App app("kiln-bench: measures Kiln, compared with other libraries and with the machine's limits", "kiln-bench");
  app.add_option("benchmark", name, "name of the benchmark");
  app.add_option("--device", wishes.device, "the device that Kiln runs on (cpu; for static and users simulator:sm_80)");
  app.add_option("--dtype", wishes.type, "type of operands: f32, bf16, f16 or i8 (f32; for static bf16)");
  app.add_option("--precision", wishes.precision,
                 "precision of f32 products: ieee, tf32, tf32x3 or bf16x3 (default: the device's)");
  CLI::Option *limit = app.add_option(
      "--threads", wishes.threads, "threads of Kiln and of the other library (default: KILN_THREADS, else all cores)");
  app.add_option("--json", wishes.json, "also write the rows to this file");
  app.add_option("--only", wishes.only, "vmap: only the rows whose names contain this");
  app.add_flag("--quick", wishes.quick, "small shapes, measured once: a check that it works");
  app.add_option("--nvdisasm", wishes.nvdisasm, "static, users: NVIDIA's disassembler, to count machine code");
  app.add_option("--triton", wishes.triton, "static, users: rows written by triton_static.py, for comparison");
  app.add_option("--ratchet", wishes.ratchet,
                 "static: only compare a step with this baseline; a worse number is an error");
  app.add_flag("--accept", wishes.accepts, "static: write a new baseline");
  app.add_option("--read", wishes.read, "static: only count the kernel of this file, which 'nvdisasm -c' wrote");
  app.set_version_flag("--version", versionText("kiln-bench"), "print the version of Kiln");
  app.footer(footer);
  if (!parseFlags(app, argc, argv))
    return 0;
  if (limit->count() && wishes.threads < 1)
    throw Error(fmt::format("expected --threads to be at least 1, but got {}", wishes.threads));
  if (name.empty())
    throw Error("kiln-bench requires a benchmark, such as 'kiln-bench matmul'; see --help");
  runBench(benchNamed(name), wishes);
  return 0;
}

int main(int argc, char **argv) {
  return runProgram("kiln-bench", [=] { return run(argc, argv); });
}
