// The benchmarks of kiln-bench, and what they share: the device, the number of threads, the peer.

#pragma once

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "tools/kiln-bench/measure.h"
#include "tools/kiln-bench/problems.h"
#include "tools/kiln-bench/report.h"

namespace kiln::bench {

/// What the command line asks for besides.
struct Options {
  /// Small shapes, measured once: that every row comes, not how fast anything is.
  bool quick = false;
  std::string nvdisasm; // NVIDIA's disassembler; empty: none
  std::string read;     // a disassembly to count, and nothing else
  std::string triton;   // a file of Triton's rows
  std::string ratchet;  // numbers that may not get worse
  bool accepts = false; // they are written anew
  std::string only;     // the rows whose names contain this
};

/// What every benchmark gets.
struct Setting : Options {
  Setting(const Options &options, std::shared_ptr<Device> device, Report &report)
      : Options(options), device(std::move(device)), threads(this->device->threads()), report(report) {}

  std::shared_ptr<Device> device;
  int threads;
  Report &report;
  std::optional<Precision> precision = {}; // of products of f32, where one is asked for
  Type type = Type::f32;                   // of operands

  /// The device's target, with that precision.
  Target target() const {
    Target target = device->target();
    target.precision = precision;
    return target;
  }
  int rounds() const { return quick ? 1 : usualRounds; }
  /// Median seconds a call for each contender, as bench::measure says, until the device has done what they asked for;
  /// `sampleSeconds` is the usual length of a sample.
  std::vector<double> measure(const std::vector<Contender> &contenders, double sampleSeconds = 0.05) const {
    return bench::measure(contenders, rounds(), quick ? 0 : sampleSeconds, [&] { device->synchronize(); });
  }
  /// Whether the device's memory is the host's, and its limits are those of the host's cores.
  bool isHost() const { return std::holds_alternative<CpuFacts>(device->target().facts); }
};

/// Products of a GPT-2 124M step and their ragged neighbours, beside oneDNN, narrow ones also beside those of f32; and
/// their errors.
void benchMatmul(Setting &setting);
/// Causal attention forward and backward on useful work, beside the product rate of the same run.
void benchAttention(Setting &setting);
/// LayerNorm, cross-entropy, GELU, embedding and AdamW: least bytes over time, beside a plain copy of as many bytes.
void benchLayerNorm(Setting &setting);
/// Sums and copies of rows by the stride of their elements, beside rows of stride 1; reshapes, gathered pages, a check,
/// masks, additions, running sums, beside a copy; elements that positions name.
void benchViews(Setting &setting);
/// A batch of examples as a loop of launches, as one launch of what vmap makes, and by kernels batched by hand.
void benchVmap(Setting &setting);
/// Training steps of GPT-2 124M, beside the multiply-add peak; peak memory beside the plan.
void benchStep(Setting &setting);
/// A token more of GPT-2 124M: the bytes that it reads over time, beside a copy of as many.
void benchToken(Setting &setting);
/// Host time of a launch, beside its budget.
void benchLaunch(Setting &setting);
/// Cold and warm compile times of every kernel and of a training step.
void benchCompile(Setting &setting);
/// Registers and spills of every kernel of a training step, and of each kernel at its default config, by NVIDIA's
/// assembler. Throws Error when the step's have a spill, a warning, or an operation without its rounding.
void benchPtxas(Setting &setting);
/// Kernels by what a GPU would have to do for them, beside Triton's; a predicted step. Throws Error when a number is
/// worse than in the ratchet's file.
void benchStatic(Setting &setting);
/// The times on a GPU that the pipe model needs, with the moments at which they were measured.
void benchProbe(Setting &setting);
/// Users' kernels by their instructions for each element, beside Triton's.
void benchUsers(Setting &setting);
/// The simulator of PTX: products, instructions, decoding; with its checks off and on, beside their budgets.
void benchSimulator(Setting &setting);

/// A tensor of the setting's type, filled with numbers spread evenly over (−1, 1), integers over (−127, 127), the same
/// for the same seed.
Tensor randomTensor(const Setting &setting, const Shape &extents, uint64_t seed);
/// A tensor of zeros.
Tensor zeroTensor(const Setting &setting, const Shape &extents, Type type = Type::f32);

/// The device's memory for operands that `held` keeps, zeroed; or what is large holds numbers, for a GPU multiplies
/// zeros faster, and tokens and records are zeros.
Space spaceOf(const Setting &setting, std::vector<std::unique_ptr<Tensor>> &held, bool zeroed = true);

/// A row for each kernel, the longest first: its milliseconds beside those of `whole`, which together are so many.
void addByKernel(Setting &setting, Row row, const std::map<std::string, double> &milliseconds, const char *whole,
                 double all);

/// A copy of all that `from` holds to `to`, as large: what the machine moves at best.
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

/// C (M, N) = op(A) · op(B), sums of length K, op by the two flags; all dense by rows.
struct PeerProduct {
  bool transposeA, transposeB;
  int64_t M, N, K;
};
/// oneDNN's way to compute it. None on a device whose memory is not the host's, for types that it does not multiply on
/// this machine, and when this kiln-bench was built without it.
std::optional<Contender> peerOf(const Setting &setting, const PeerProduct &product, const Tensor &a, const Tensor &b,
                                Tensor &c);
/// How many threads it computes with.
void setPeerThreads(int threads);

} // namespace kiln::bench
