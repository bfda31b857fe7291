// Measures inputs of the performance model on a GPU:
//
// - each kernel of a GPT-2 124M step with a warm and with a flushed L2 cache
// - further configs of kernels whose best config is not known
// - the main loop of products with a negligible prologue and epilogue
// - the rate of the L2 cache
//
// Each row has the begin and the end of its measurement, to compare it with a log of clock rates.

#include "dialect/dsl/Kernel.h"
#include "kernels/cross_entropy.h"
#include "kernels/matmul.h"
#include "runtime/Streams.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/problems.h"

#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace kiln;
using namespace kiln::bench;

namespace {
/// A plan to measure, and the numbers that its time is compared with; 0: not applicable.
struct Probe {
  std::string part, name;
  Plan plan;
  double operations = 0, bytes = 0;
  double rounds = 0; // of the main loop that an SM runs one after another
};

/// The probes of one part, whose operands live as long as they do.
class Probes {
public:
  explicit Probes(Setting &setting) : make(makeSpace(setting, held, /*zeroed=*/false)), setting(setting) {}

  void add(Probe probe) { all.push_back(std::move(probe)); }
  void measure() const;

private:
  std::vector<std::unique_ptr<Tensor>> held;
  std::vector<Probe> all;

public:
  Operands make;
  Setting &setting;
};
} // namespace

static double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Measures each probe as it follows itself, and after a copy that replaces the contents of the L2 cache.
void Probes::measure() const {
  const double flushed = setting.quick ? 1 << 11 : 128 << 20; // both halves are larger than any such cache
  const Contender flush = copyOf(setting, flushed);
  for (const Probe &probe : all) {
    const Runner run(setting, probe.plan);
    const double begin = now();
    const std::vector<double> seconds = setting.measure({run, flush, [&] {
                                                           flush();
                                                           run();
                                                         }});
    nlohmann::ordered_json row{{"bench", "probe"},       {"part", probe.part},
                               {"name", probe.name},     {"config", probe.plan.launches[0].config},
                               {"us", seconds[0] * 1e6}, {"flushed_us", (seconds[2] - seconds[1]) * 1e6},
                               {"begin", begin},         {"end", now()}};
    std::string text = fmt::format("{:<9} {:<62} {:>10.1f} us {:>10.1f} flushed", probe.part, probe.name,
                                   row["us"].get<double>(), row["flushed_us"].get<double>());
    const auto rate = [&](const char *key, double amount, double unit, const char *shown) {
      if (amount == 0)
        return;
      row[key] = amount / seconds[0] / unit;
      text += fmt::format(" {:>8.3f} {}", row[key].get<double>(), shown);
    };
    rate("tflops", probe.operations, 1e12, "TFLOP/s");
    rate("tb_per_s", probe.bytes, 1e12, "TB/s");
    if (probe.rounds > 0) {
      row["ns_per_iteration"] = seconds[0] * 1e9 / probe.rounds;
      text += fmt::format(" {:>8.1f} ns per iteration", row["ns_per_iteration"].get<double>());
    }
    setting.report.addObject(row.dump());
    writeResult(text + "\n");
  }
}

// --- Parts -----------------------------------------------------------------------------------------------------------

/// Each kernel of a step, as plans pick it.
static void probeStep(Setting &setting) {
  Probes probes(setting);
  const Gpt2Config model = setting.quick ? tinyModel(setting.type) : config124M(setting.type);
  std::vector<std::unique_ptr<Tensor>> held;
  for (const Problem &problem :
       stepProblems(setting.target(), model, setting.quick ? 2 : 8, makeSpace(setting, held, false)))
    probes.add({"step", problem.name, {{problem.launch}, problem.workspaceBytes}});
  probes.measure();
}

static MatmulConfig tileOf(int bm, int bn, int warps, int stages) {
  return {.bm = bm, .bn = bn, .warps = warps, .stages = stages};
}

/// Tiles of products with GELU and their gradient; the output layer with and without a ragged last column.
static void probeProducts(Setting &setting) {
  Probes probes(setting);
  Operands &make = probes.make;
  const Type type = setting.type;
  const int64_t M = setting.quick ? 256 : 8192, K = setting.quick ? 64 : 768, N = 4 * K;
  const double operations = 2.0 * static_cast<double>(M * N * K);
  const TensorRef x = make({M, K}, type), w = make({K, N}, type), bias = make({N}, type);
  const TensorRef preact = make({M, N}, type), out = make({M, N}, type);
  for (const MatmulConfig &tile : {tileOf(128, 128, 4, 3), tileOf(128, 192, 8, 4), tileOf(128, 256, 8, 4)}) {
    const std::string name = fmt::format("{}x{}", tile.bm, tile.bn);
    probes.add({"gelu", "forward " + name, planMatmulGelu(setting.target(), Layout::nn, x, w, bias, preact, out, tile),
                operations});
    probes.add({"gelu", "backward " + name,
                planMatmulGeluBackward(setting.target(), Layout::nt, x, make({N, K}, type), preact, out, tile),
                operations});
  }
  const int64_t V = setting.quick ? 129 : 50257, padded = (V + 127) / 128 * 128;
  const TensorRef table = make({padded, K}, type), logits = make({M, padded}, type);
  for (const int64_t columns : {V, padded})
    probes.add({"output", fmt::format("{} columns, {} apart", columns, padded),
                planMatmul(setting.target(), Layout::nt, x, table.slice(0, 0, columns), logits.slice(1, 0, columns)),
                2.0 * static_cast<double>(M * K * columns)});
  probes.measure();
}

/// Cross-entropy with rows in parts, whole, and by fewer warps.
static void probeLosses(Setting &setting) {
  Probes probes(setting);
  const int64_t N = setting.quick ? 8 : 8192, V = setting.quick ? 250 : 50257, padded = (V + 127) / 128 * 128;
  const TensorRef logits = probes.make({N, padded}, setting.type), losses = probes.make({N}, f32);
  const std::vector<int32_t> zeros(static_cast<size_t>(N));
  const TensorRef targets = probes.make.of({N}, i32, zeros);
  const CrossEntropyConfig picked = pickCrossEntropy(setting.target(), padded, setting.type);
  CrossEntropyConfig whole = picked, fewer = picked;
  whole.whole = true;
  fewer.warps = 16;
  for (const auto &[name, config] : {std::pair("as picked", picked), {"whole rows", whole}, {"16 warps", fewer}})
    probes.add({"losses", name,
                planCrossEntropy(setting.target(), logits, targets, losses, V, 1, ignoreIndex, {}, {}, config), 0,
                2.0 * static_cast<double>(logits.bytes())});
  probes.measure();
}

/// One program an SM with a very long loop.
static void probeLoops(Setting &setting) {
  constexpr int64_t rows = 12, columns = 11; // tiles: 132, the SMs of an H100
  const int64_t K = setting.quick ? 256 : 65536;
  for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn})
    for (const int bn : {192, 256}) {
      Probes probes(setting);
      const MatmulConfig tile = tileOf(128, bn, 8, 4);
      const int64_t M = (setting.quick ? 1 : rows) * tile.bm, N = (setting.quick ? 1 : columns) * bn;
      const TensorRef a = probes.make(layout == Layout::tn ? Shape{K, M} : Shape{M, K}, setting.type);
      const TensorRef b = probes.make(layout == Layout::nt ? Shape{N, K} : Shape{K, N}, setting.type);
      static const char *const names[] = {"nn", "nt", "tn"};
      probes.add({"loop", fmt::format("{} 128x{}x64", names[static_cast<int>(layout)], bn),
                  planMatmul(setting.target(), layout, a, b, probes.make({M, N}, setting.type), false, tile),
                  2.0 * static_cast<double>(M * N * K), 0, static_cast<double>(K) / tile.bk});
      probes.measure();
    }
}

struct ReadConfig {
  int block = 4096, warps = 8;
};
/// Each program reads all of x (N) and writes the sum of its blocks. out (P, block).
static void readAll(View x, View out, ReadConfig config) {
  Tile sum = zeros(f32, {config.block});
  for (Tile at : range(0, x.dim(0), config.block))
    sum = sum + cast(load(x, {at}, {config.block}), f32);
  store(out, {program_id(0), 0}, sum);
}
static const Kernel readAllKernel = kernel("read_all", readAll, {"x (N)", "out (P, B) f32"},
                                           {field("block", &ReadConfig::block), field("warps", &ReadConfig::warps)});

/// Reads of data that the level-2 cache holds: by its halves, and by both.
static void probeReads(Setting &setting) {
  Probes probes(setting);
  const int64_t programs = setting.quick ? 2 : 132 * 4;
  const ReadConfig config;
  for (const int64_t megabytes : {8, 16, 32}) {
    const int64_t count = setting.quick ? 2 * config.block : megabytes << 19; // elements of 2 bytes
    const TensorRef x = probes.make({count}, bf16), out = probes.make({programs, config.block}, f32);
    Plan plan;
    plan.launches.push_back({&readAllKernel, textOf(readAllKernel.fields, config), programs, {x, out}});
    probes.add(
        {"reads", fmt::format("{} MB by each program", megabytes), plan, 0, static_cast<double>(programs * x.bytes())});
  }
  probes.measure();
}

void bench::benchProbe(Setting &setting) {
  if (setting.isHost())
    throw Error("expected a GPU, such as --device cuda:0, but got a CPU");
  for (const auto part : {probeStep, probeProducts, probeLosses, probeLoops, probeReads})
    part(setting);
}
