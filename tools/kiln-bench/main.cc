// kiln-bench: how fast Kiln is, beside a peer or beside what the machine can do at best, in the same run.
//
//     kiln-bench matmul|attention|layernorm|step|compile [--threads N] [--json F]

#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/machine.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fmt/format.h>
#include <omp.h>

using namespace kiln;

/// The machine's own limits, in the units that the other rows use.
static void benchMachine(bench::Setting &setting) {
  setting.report.section("machine");
  int64_t count = int64_t{64} << 20;
  Tensor from = bench::zeroTensor(setting, {count}), to = bench::zeroTensor(setting, {count});
  double flops = bench::runMultiplyAdds(setting.threads, bench::peakRounds);
  std::vector<double> seconds =
      bench::measure({[&] { bench::runMultiplyAdds(setting.threads, bench::peakRounds); },
                      [&] {
                        bench::copyFloats(static_cast<float *>(to.data()), static_cast<const float *>(from.data()),
                                          count, setting.threads);
                      }});
  setting.report.add({.bench = "machine", .shape = "fma", .metric = "gflops", .value = flops / seconds[0] / 1e9});
  setting.report.add({.bench = "machine",
                      .shape = "copy 256 MB",
                      .metric = "gb_per_s",
                      .value = 8.0 * static_cast<double>(count) / seconds[1] / 1e9});
}

static int runBench(const std::string &name, int threads, const std::string &json) {
  static const std::map<std::string, void (*)(bench::Setting &)> benches = {{"matmul", bench::benchMatmul},
                                                                            {"attention", bench::benchAttention},
                                                                            {"layernorm", bench::benchLayerNorm},
                                                                            {"step", bench::benchStep},
                                                                            {"compile", bench::benchCompile}};
  std::shared_ptr<Device> device = Device::open("cpu");
  if (threads > 0)
    device->setThreads(threads);
  threads = device->threads();
  omp_set_num_threads(threads); // the peer's too
  fmt::print("kiln-bench {} on {}, {} thread{}\n", name, device->target().name, threads, threads == 1 ? "" : "s");
  bench::Report report(threads);
  bench::Setting setting{device, threads, report};
  if (name != "compile")
    benchMachine(setting);
  benches.at(name)(setting);
  if (!json.empty())
    report.writeJson(json);
  return 0;
}

int main(int argc, char **argv) {
  CLI::App app{"kiln-bench: Kiln beside its peers and beside the machine's limits"};
  app.require_subcommand(1);
  int threads = 0;
  std::string json;
  for (auto [name, text] : {std::pair{"matmul", "fp32 products of a GPT-2 124M step, beside oneDNN"},
                            std::pair{"attention", "causal flash attention, beside the product rate"},
                            std::pair{"layernorm", "LayerNorm, cross-entropy, AdamW, beside a copy"},
                            std::pair{"step", "GPT-2 124M training steps, beside the multiply-add peak"},
                            std::pair{"compile", "compile times, cold and from disk"}}) {
    CLI::App *command = app.add_subcommand(name, text);
    command->add_option("--threads", threads, "threads of Kiln and of the peer (default: KILN_THREADS, else all cores)")
        ->check(CLI::PositiveNumber);
    command->add_option("--json", json, "also write the rows to this file");
  }
  CLI11_PARSE(app, argc, argv);
  try {
    return runBench(app.get_subcommands().front()->get_name(), threads, json);
  } catch (const std::exception &error) {
    fmt::print(stderr, "kiln-bench: error: {}\n", error.what());
    return 1;
  }
}
