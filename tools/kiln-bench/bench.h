// The benchmarks of kiln-bench, and their common parts: times, rows, device, threads, the machine's peaks, and the
// peer, a library for comparison.

#pragma once

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "tools/kiln-bench/problems.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kiln::bench {

// --- Times ----------------------------------------------------------------------------------------------------------

// Contenders are measured in turn, so that a disturbance of the machine affects all of them. The time of each is its
// median.

/// A function to time. Each call must do equal work.
using Contender = std::function<void()>;

/// Rounds, each of which times every contender once.
inline constexpr int usualRounds = 7;

/// The median seconds per call of each contender. Every contender is first called once without measurement, to compile
/// and to access its memory. A sample is as many calls as take `sampleSeconds`, at least one, and `finish`, which waits
/// for their work. `rounds` is odd.
std::vector<double> measure(
    const std::vector<Contender> &contenders, int rounds, double sampleSeconds,
    const std::function<void()> &finish = [] {});

/// The median of an odd number of values.
double median(std::vector<double> values);
/// Geometric mean; 0 for no values.
double geometricMean(const std::vector<double> &values);

// --- Results: rows, each printed to a table at once, and all written as JSON at the end -----------------------------

/// One measured number. If a peer was measured too, also the peer's number and the ratio of the two.
struct Row {
  std::string bench = {}; // empty: the benchmark of the report
  std::string shape;      // `qkv 256x2304x768 nn`
  std::string metric;     // `gflops`, `gb_per_s`, `ms`, …
  double value = 0;
  std::string peer = {}; // the peer: `onednn`, `copy`, `fma_peak`, …; empty: none
  double peerValue = 0;
  /// The ratio; default: value / peerValue.
  std::optional<double> ratio = {};
  std::string dtype = {}; // empty: the type of the report
  int threads = 1;
};

class Report {
public:
  /// A report of a benchmark on operands of a type, also written to the file `json`, unless the name is empty. Throws
  /// Error at once, before anything is measured, if that file cannot be written.
  Report(std::string bench, std::string dtype, int threads, std::string json);

  /// Adds a row and prints it.
  void add(Row row);
  /// Adds an object of another form, as JSON; it is written only to the file.
  void addObject(std::string json);
  /// Prints a title line above the next rows.
  void section(const std::string &title);
  /// Writes all rows as a JSON array, one row per line: {bench, shape, dtype, threads, metric, value, peer, peer_value,
  /// ratio}. peer, peer_value and ratio are null without a peer. The objects follow. Throws Error if the file cannot be
  /// written.
  void writeJson() const;

private:
  const std::string bench, dtype;
  const int threads;
  const std::string json;
  std::vector<Row> rows;
  std::vector<std::string> objects;
};

// --- The peaks of this machine's cores: multiply-adds from registers, and a plain copy of memory (machine.cc) -------

/// A multiply-add instruction. `run` executes 192 of them, or equal work, per round, without memory accesses.
struct CoreUnit {
  const char *name;
  float (*run)(int64_t rounds);
  int products; // of one instruction
};

/// The multiply-add instructions of this machine's cores: first f32 on native vectors; then, if it has them, pairs of
/// bf16, quads of i8, and AMX tiles of both.
std::vector<CoreUnit> coreUnits();

/// Rounds that take about ten milliseconds, which is long compared with starting and joining the threads.
inline constexpr int64_t peakRounds = 400000;

/// Runs the unit for `rounds` rounds on each of `threads` threads. Returns the number of operations, two per product.
double runPeak(const CoreUnit &unit, int threads, int64_t rounds = peakRounds);

/// Copies `count` floats with ordinary loads and stores of native vectors, each thread its own part.
void copyFloats(float *to, const float *from, int64_t count, int threads);

// --- Benchmarks -----------------------------------------------------------------------------------------------------

/// Further options of the command line.
struct Options {
  /// Small shapes, measured once: checks that every row is printed, and not the speed.
  bool quick = false;
  std::string nvdisasm; // NVIDIA's disassembler; empty: none
  std::string read;     // a disassembly to count; nothing else is done then
  std::string triton;   // a file of Triton's rows
  std::string ratchet;  // file of baselines; a worse number is an error
  bool accepts = false; // writes new baselines
  std::string only;     // only the rows whose names contain this
};

/// The settings that every benchmark receives.
struct Setting : Options {
  Setting(const Options &options, std::shared_ptr<Device> device, Report &report)
      : Options(options), device(std::move(device)), threads(this->device->threads()), report(report) {}

  std::shared_ptr<Device> device;
  int threads;
  Report &report;
  std::optional<Precision> precision = {}; // of f32 products, if --precision is given
  Type type = Type::f32;                   // of operands

  /// The device's target, with that precision.
  Target target() const {
    Target target = device->target();
    target.precision = precision;
    return target;
  }
  int rounds() const { return quick ? 1 : usualRounds; }
  /// The median seconds per call of each contender, as bench::measure(), including the completion of its launches.
  /// `sampleSeconds` is the usual length of a sample.
  std::vector<double> measure(const std::vector<Contender> &contenders, double sampleSeconds = 0.05) const {
    return bench::measure(contenders, rounds(), quick ? 0 : sampleSeconds, [&] { device->synchronize(); });
  }
  /// Whether the device's memory is the host's, and its limits are those of the host's cores.
  bool isHost() const { return std::holds_alternative<CpuFacts>(device->target().facts); }
};

/// Matmuls of a GPT-2 124M step, also with ragged extents (no multiples of a vector), compared with oneDNN; narrow
/// types are also compared with f32. Prints their errors too.
void benchMatmul(Setting &setting);
/// Causal attention, forward and backward: FLOPs of useful work, compared with the rate of matmuls in that run.
void benchAttention(Setting &setting);
/// LayerNorm, cross-entropy, GELU, embedding and AdamW: the minimum number of bytes divided by the time, compared with
/// a copy of as many bytes.
void benchLayerNorm(Setting &setting);
/// Sums and copies of rows with strided elements, compared with stride 1. Reshapes, gathered pages, a check, masks,
/// additions and running sums, compared with a copy. Gathers and scatters of single elements.
void benchViews(Setting &setting);
/// A batch of examples by a loop of launches, by one launch of a vmap kernel, and by kernels batched by hand.
void benchVmap(Setting &setting);
/// Training steps of GPT-2 124M, compared with the multiply-add peak; peak memory compared with the memory plan.
void benchStep(Setting &setting);
/// Decoding one token of GPT-2 124M: the bytes that it reads divided by the time, compared with a copy of as many
/// bytes.
void benchToken(Setting &setting);
/// Host time of a launch, compared with its budget.
void benchLaunch(Setting &setting);
/// Cold and warm compile times of every kernel and of a training step.
void benchCompile(Setting &setting);
/// Registers and spills by ptxas, for every kernel of a training step, and for each kernel at its default config.
/// Throws Error if a kernel of the step has a spill, a warning, or an operation without a rounding mode.
void benchPtxas(Setting &setting);
/// Instructions and memory traffic of kernels on a GPU, compared with Triton's; the predicted time of a step. Throws
/// Error if a number is worse than its baseline.
void benchStatic(Setting &setting);
/// Times on a GPU that the performance model needs, each with the time of its measurement.
void benchProbe(Setting &setting);
/// Instructions per element of user kernels, compared with Triton's.
void benchUsers(Setting &setting);
/// The PTX simulator: products, instructions, decoding; with checks off and on, compared with budgets.
void benchSimulator(Setting &setting);

/// A tensor of the setting's type with uniform random numbers: floats in (−1, 1), integers in (−127, 127). Equal seeds
/// give equal numbers.
Tensor randomTensor(const Setting &setting, const Shape &extents, uint64_t seed);
/// A tensor of zeros.
Tensor zeroTensor(const Setting &setting, const Shape &extents, Type type = Type::f32);

/// A space in the device's memory; `held` owns the tensors. With `zeroed` they are zeros. Otherwise large tensors have
/// random numbers, because a GPU multiplies zeros faster; tokens and records are zeros.
Space makeSpace(const Setting &setting, std::vector<std::unique_ptr<Tensor>> &held, bool zeroed = true);

/// Adds a row for each kernel, the longest first: its milliseconds, and their fraction of `all`, the milliseconds of
/// `whole`.
void addByKernel(Setting &setting, const std::string &shape, const std::map<std::string, double> &milliseconds,
                 const char *whole, double all);

/// A plain copy that reads and writes as many bytes together: the highest bandwidth of the machine.
Contender copyOf(const Setting &setting, double bytes);

/// A plan with its workspace, ready to run again and again.
class Runner {
public:
  Runner(const Setting &setting, Plan plan);
  void operator()() const { run(*device, plan, *workspace); }

private:
  std::shared_ptr<Device> device;
  Plan plan;
  std::shared_ptr<Tensor> workspace;
};

/// C (M, N) = op(A) · op(B) with sums of length K. The flags select op. All matrices are dense and row-major.
struct PeerProduct {
  bool transposeA, transposeB;
  int64_t M, N, K;
};
/// The product by oneDNN. None if the device does not use host memory, if oneDNN does not multiply the type on this
/// machine, or if kiln-bench was built without oneDNN.
std::optional<Contender> oneDnnContender(const Setting &setting, const PeerProduct &product, const Tensor &a,
                                         const Tensor &b, Tensor &c);
/// Sets the number of threads of oneDNN.
void setPeerThreads(int threads);

} // namespace kiln::bench
