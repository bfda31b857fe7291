// The launches that `kiln-bench static` measures. A training step and a decoded token have the configs that plans pick.
// Each kernel is also launched at its default config, and at tile sizes for comparisons with other compilers.

#pragma once

#include "kernels/operands.h"
#include "models/gpt2/network.h"
#include "models/train/settings.h"
#include "runtime/Compile.h"
#include "runtime/simulator/Memory.h"

#include <functional>
#include <map>

namespace kiln::bench {

struct Problem {
  std::string set;  // "step", "token", "form", "default", "tile" or "users"
  std::string name; // of kernel and shapes: "matmul_bias 8192x768 768x2304"
  std::string peer; // the name of the problem in triton_static.py: "matmul nn"; empty: it has no such problem
  Type type = f32;
  Launch launch;
  int64_t times = 1; // number of such launches in a step
  int64_t workspaceBytes = 0;
  double elements = 0; // per iteration of the main loop, or per program if there is no loop; 0: MMAs are counted

  /// The value of a field of the config; 0 if there is no such field.
  int64_t field(const std::string &name) const;
};

/// The memory of operands: a function that allocates zeroed memory, and one that writes to it.
struct Space {
  std::function<void *(int64_t bytes)> allocate;
  std::function<void(void *to, const void *from, int64_t bytes)> write;

  /// The simulator's memory. It uses host memory only after the first access.
  static Space of(simulator::Memory &memory);
  /// No memory, for launches that are only compiled.
  static Space imagined();
};

/// A sequence of integers, first + i · step; with a modulus other than 0, their remainders.
struct Progression {
  int64_t first, step, modulus = 0;
};
/// The values of arguments that are not zeros: scalars in order, and integers of 4 bytes or of one, by tensor name.
struct Content {
  std::vector<Arg> scalars = {};
  std::map<std::string, Progression> integers = {};
};

/// Dense tensors of a space.
class Operands {
public:
  explicit Operands(Space space) : space(std::move(space)) {}
  TensorRef operator()(const Shape &extents, Type type);
  /// The record of a step that is applied: all ones.
  TensorRef record();
  /// A kernel's arguments, as its registration describes them: "mean (N) f32", "starts (M + 1) i32 of rows". Arguments
  /// without a type in the registration have `type`. Throws Error for an extent that is not in `extents`.
  std::vector<Arg> of(const Kernel &kernel, const NamedExtents &extents, Type type, const Content &content = {});
  /// A dense tensor with these numbers.
  template <class Number> TensorRef of(const Shape &extents, Type type, const std::vector<Number> &numbers) {
    const TensorRef tensor = (*this)(extents, type);
    space.write(tensor.data, numbers.data(), tensor.bytes());
    return tensor;
  }

private:
  const Space space;
};

// --- A step ---------------------------------------------------------------------------------------------------------

/// Returns the first byte of a region of memory, given the region's number and its size.
using Regions = std::function<void *(int region, int64_t bytes)>;
/// Memory that is never read, for plans whose kernels are only compiled: regions are 2⁴⁰ bytes apart.
void *imaginedRegion(int region, int64_t bytes);
/// The region of workspaces.
inline constexpr int workspaceRegion = 1;
/// The regions of the step's record, of the distinct tokens, and of the starts of their positions.
inline constexpr int recordRegion = 4, distinctRegion = 12, startsRegion = 13;

/// GPT-2 124M with this number of layers, and with weights and activations of `type`.
Gpt2Config config124M(Type type, int64_t layers = 12, int64_t context = 1024);

/// A small model for --quick.
Gpt2Config tinyModel(Type type);

/// The launches of a trainer with these settings: the gradient, written and accumulated; the losses, if it evaluates;
/// the update.
Plan stepPlan(const Target &target, const Model &model, const TrainSettings &settings, const Regions &regions,
              bool evaluates = true);
/// The launches of all ways to train on `sequences` sequences in the model's type: with one micro-batch and with
/// several; for a narrow type, with and without master weights.
Plan stepPlans(const Target &target, const Model &model, int64_t sequences);
/// The distinct launches of a step of a model with `sequences` sequences.
std::vector<Problem> stepProblems(const Target &target, const Gpt2Config &config, int64_t sequences,
                                  const Space &space);
// --- A decoded token ------------------------------------------------------------------------------------------------

/// Decoding one token of each of `texts` texts at once, with a full KV cache.
Plan tokenPlan(const Target &target, const Gpt2Config &config, int64_t texts, Operands &make);
/// The bytes of weights and caches that it reads.
double bytesOfToken(const Gpt2Config &config, int64_t texts);
/// The distinct launches of tokenPlan().
std::vector<Problem> tokenProblems(const Target &target, const Gpt2Config &config, int64_t texts, Operands &make);
// --- Each kernel ----------------------------------------------------------------------------------------------------

/// Sizes of operands: N rows of C elements, T rows per sequence, H heads, V tokens; the rows of losses; the elements of
/// activations and of weights.
struct KernelSizes {
  int64_t N, T, C = 768, H = 12, V = 50257, losses, activations, weights;
  bool defaults = false; // each kernel at its default config; otherwise at the config that its plan picks
};
/// The launches of a kernel, the name of its row, and the minimum number of bytes that they move; 0: not memory-bound.
struct KernelPlan {
  std::string name;
  double bytes;
  Plan plan;
};
std::vector<KernelPlan> rowPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);
std::vector<KernelPlan> flatPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);
Plan productPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);
Plan attentionPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);
/// All of the plans above.
Plan kernelPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);

/// Every kernel at the config that `kilnc --kernel=NAME` compiles without --config, at sizes of such a step.
std::vector<Problem> defaultProblems(const Target &target, Type type, Operands &make);
/// Both passes of attention in forms that a step of GPT-2 does not use: packed documents, a byte mask, dropout of the
/// weights, grouped heads, and plain attention with dropout; at the configs that plans pick.
std::vector<Problem> formProblems(const Target &target, Type type, Operands &make);
/// Products and attention in several types, with tile sizes that are fast with other compilers.
std::vector<Problem> tileProblems(const Target &target, Operands &make);

/// The launches of a plan as problems of one set.
std::vector<Problem> problemsOf(const std::string &set, const Plan &plan, Type type);

} // namespace kiln::bench
