// Launches that `kiln-bench static` looks at: those of a training step and of a token at the configs that plans pick,
// one of each kernel at its default config, and tiles that are compared with other compilers'.

#pragma once

#include "kernels/operands.h"
#include "models/gpt2/config.h"
#include "runtime/Compile.h"
#include "runtime/simulator/Memory.h"

#include <functional>
#include <map>

namespace kiln::bench {

struct Problem {
  std::string set;  // "step", "token", "form", "default", "tile" or "users"
  std::string name; // of kernel and shapes: "matmul_bias 8192x768 768x2304"
  std::string peer; // what triton_static.py calls the same problem: "matmul nn"; empty: nothing like it is there
  Type type = f32;
  Launch launch;
  int64_t times = 1; // that a step launches it
  int64_t workspaceBytes = 0;
  double elements = 0; // that a round of the main loop works on, or a program without one; 0: products are counted

  /// The number that the config gives a field, 0 when it has none.
  int64_t field(const std::string &name) const;
};

/// Where operands lie: what gives zeroed memory, and what writes there.
struct Space {
  std::function<void *(int64_t bytes)> allocate;
  std::function<void(void *to, const void *from, int64_t bytes)> write;

  /// The simulator's memory, which takes none of the host's until it is touched.
  static Space of(simulator::Memory &memory);
  /// No memory, for what is only compiled.
  static Space imagined();
};

/// Integers in a row: the first, how far the next is, and what they are the remainders by, if by anything.
struct Progression {
  int64_t first, step, modulus = 0;
};
/// What arguments hold, in place of zeros: scalars in order, and integers of 4 bytes or of one, by the tensor's name.
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
  /// A kernel's arguments as its registration describes them: "mean (N) f32", "starts (M + 1) i32 of rows"; those of
  /// which it names no type are of `type`. Throws Error for an extent that is not given.
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

/// Each launch of a step of a model on so many sequences that differs from the others.
std::vector<Problem> stepProblems(const Target &target, const Gpt2Config &config, int64_t sequences,
                                  const Space &space);
/// One more token of so many texts side by side, of which the cache is full.
Plan tokenPlan(const Target &target, const Gpt2Config &config, int64_t texts, Operands &make);
/// Weights and caches, which it reads.
double bytesOfToken(const Gpt2Config &config, int64_t texts);
/// Each of its launches that differs from the others.
std::vector<Problem> tokenProblems(const Target &target, const Gpt2Config &config, int64_t texts, Operands &make);
/// How large operands are: N rows of C, of which T make a sequence, in H heads; V tokens; rows of losses; elements of
/// activations and of weights.
struct KernelSizes {
  int64_t N, T, C = 768, H = 12, V = 50257, losses, activations, weights;
  bool defaults = false; // each kernel at its default config, else at what its plan picks
};
/// A kernel's launches by what rows call them, and the bytes that they move at least; 0: other things bound them.
struct KernelPlan {
  std::string name;
  double bytes;
  Plan plan;
};
std::vector<KernelPlan> rowPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);
std::vector<KernelPlan> flatPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);
Plan productPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);
Plan attentionPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);
/// All of these.
Plan kernelPlans(const Target &target, Type type, const KernelSizes &sizes, Operands &make);

/// Every kernel at the config that `kilnc --kernel=NAME` compiles without --config, at sizes of such a step.
std::vector<Problem> defaultProblems(const Target &target, Type type, Operands &make);
/// Both passes of attention in the forms that a step of GPT-2 has not: packed documents, a free mask, dropout of the
/// weights, grouped heads, and plain attention with dropout; at the configs that plans pick.
std::vector<Problem> formProblems(const Target &target, Type type, Operands &make);
/// Products and attention with the tiles that other compilers are known to be good at, in several types.
std::vector<Problem> tileProblems(const Target &target, Operands &make);

/// The launches of a plan as problems of one set.
std::vector<Problem> problemsOf(const std::string &set, const Plan &plan, Type type);

} // namespace kiln::bench
