// The benchmarks of kiln-bench, and their common parts: device, threads, and the peer, a library for comparison.

#pragma once

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "tools/kiln-bench/measure.h"
#include "tools/kiln-bench/problems.h"
#include "tools/kiln-bench/report.h"

namespace kiln::bench {

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
Space spaceOf(const Setting &setting, std::vector<std::unique_ptr<Tensor>> &held, bool zeroed = true);

/// Adds a row for each kernel, the longest first: its milliseconds, and their fraction of `all`, the milliseconds of
/// `whole`.
void addByKernel(Setting &setting, Row row, const std::map<std::string, double> &milliseconds, const char *whole,
                 double all);

/// A copy of `from` to `to`, which has its size: the highest bandwidth of the machine.
Contender copyOf(const Setting &setting, const Tensor &from, Tensor &to);

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
std::optional<Contender> peerOf(const Setting &setting, const PeerProduct &product, const Tensor &a, const Tensor &b,
                                Tensor &c);
/// Sets the number of threads of oneDNN.
void setPeerThreads(int threads);

} // namespace kiln::bench
