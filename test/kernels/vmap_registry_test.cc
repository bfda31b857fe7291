// vmap of every registered kernel and of every plan of kernels/ has the bits of a launch for each example. A kernel's
// arguments are derived from its registration, so a new kernel is included automatically.
//
// The order of sums is equal if the facts of the views are. On a CPU it follows from extents alone. For a GPU, kernels
// get views without known facts: they begin at an odd element, and no extent is a multiple of a power of two. Plans get
// tensors with all facts, with their examples along the first dimension.

#include "kernels/Registry.h"
#include "kernels/operands.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/devices.h"
#include "test/kernels/vmap_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace kiln {
namespace {

using test::Part;
using Axes = std::vector<std::optional<int>>;
constexpr int64_t examples = 5; // more than the strides that are known while compiling

/// The extents of the names in registrations.
const NamedExtents extentsOfNames = {{"B", 2},  {"C", 13}, {"D", 7},  {"G", 5},  {"H", 3}, {"Hk", 3},
                                     {"K", 9},  {"M", 7},  {"N", 11}, {"P", 3},  {"S", 5}, {"T", 9},
                                     {"Tk", 9}, {"Tq", 9}, {"U", 5},  {"V", 17}, {"n", 6}};

/// The arguments of a kernel at small extents.
std::vector<Part> partsOf(const Kernel &kernel, Type storage) {
  std::vector<Part> parts;
  for (const ArgumentForm &form : argumentForms(kernel))
    parts.push_back({form.shape(extentsOfNames), form.type(storage)});
  return parts;
}

/// A parameter of a kernel, or a tensor of a plan, for a batch: equal numbers twice, for vmap and for a loop.
class Examples {
public:
  /// `levels` has the dimension of each batch in turn, the innermost one first, and `counts` their examples. `odd`:
  /// memory begins one element after an aligned address.
  Examples(const std::shared_ptr<Device> &device, const Part &part, Axes levels, const std::vector<int64_t> &counts,
           bool odd, std::mt19937 &random)
      : levels(std::move(levels)), odd(odd) {
    Shape all = part.extents;
    for (size_t level = 0; level < counts.size(); ++level)
      if (this->levels[level])
        all.insert(all.begin() + *this->levels[level], counts[level]);
    extents = all;
    const int64_t count = TensorRef::dense(nullptr, part.type, all).count();
    for (int64_t i = 0; i < count; ++i)
      numbers.push_back(isInteger(part.type) || part.type == boolean
                            ? static_cast<double>(random() % (part.type == i8 ? 2 : 4))
                            : 0.5 + static_cast<double>(random() % 1000) / 2000);
    for (Tensor *tensor : {&atOnce, &inLoop})
      *tensor = Tensor(device, part.type, {count + odd});
    if (part.number)
      spread(part);
    put();
  }

  TensorRef whole() const { return makeRef(atOnce); }
  /// The memory of one example, in the loop.
  TensorRef own(const std::vector<int64_t> &example) const {
    TensorRef ref = makeRef(inLoop);
    for (size_t level = levels.size(); level-- > 0;)
      if (levels[level])
        ref = ref.select(*levels[level], example[level]);
    return ref;
  }
  bool isEqual() const { return bytesOf(atOnce) == bytesOf(inLoop); }
  /// The number of a scalar of one example.
  double scalar(const std::vector<int64_t> &example) const {
    const TensorRef ref = own(example);
    return numbers[(static_cast<char *>(ref.data) - static_cast<char *>(inLoop.data())) / kiln::bytesOf(ref.type) -
                   odd];
  }

private:
  TensorRef makeRef(const Tensor &tensor) const {
    TensorRef ref = TensorRef::dense(tensor.data(), tensor.type(), extents);
    ref.data = static_cast<char *>(ref.data) + (odd ? kiln::bytesOf(ref.type) : 0);
    return ref;
  }
  static std::vector<char> bytesOf(const Tensor &tensor) {
    std::vector<char> bytes(tensor.bytes());
    tensor.download(bytes.data(), tensor.bytes());
    return bytes;
  }
  /// Each example gets the part's numbers.
  void spread(const Part &part) {
    const int64_t count = TensorRef::dense(nullptr, part.type, part.extents).count();
    Shape strides = makeRef(inLoop).strides, room = extents; // of an example in the end
    int64_t copies = 1;
    std::vector<std::pair<int64_t, int64_t>> steps; // of the batches: examples, and from one to the next
    for (size_t level = levels.size(); level-- > 0;)
      if (levels[level]) {
        steps.emplace_back(room[*levels[level]], strides[*levels[level]]);
        strides.erase(strides.begin() + *levels[level]);
        room.erase(room.begin() + *levels[level]);
        copies *= steps.back().first;
      }
    for (int64_t copy = 0; copy < copies; ++copy)
      for (int64_t i = 0; i < count; ++i) {
        int64_t place = 0, rest = i, which = copy;
        for (size_t d = part.extents.size(); d-- > 0; rest /= part.extents[d])
          place += rest % part.extents[d] * strides[d];
        for (const auto &[of, stride] : steps) {
          place += which % of * stride;
          which /= of;
        }
        numbers[place] = part.number(i);
      }
  }
  void put() {
    std::vector<double> all(numbers);
    if (odd)
      all.insert(all.begin(), 0);
    std::vector<char> bytes(atOnce.bytes());
    fromDoubles(all, atOnce.type(), bytes.data());
    for (Tensor *tensor : {&atOnce, &inLoop})
      tensor->upload(bytes.data(), tensor->bytes());
  }

  Axes levels;
  bool odd;
  Shape extents;
  std::vector<double> numbers;
  Tensor atOnce, inLoop;
};

/// Calls `each` with the number of every example, of each level, the inner ones first.
template <class Each> void forExamples(const std::vector<int64_t> &counts, Each each) {
  std::vector<int64_t> example(counts.size(), 0);
  int64_t all = 1;
  for (const int64_t count : counts)
    all *= count;
  for (int64_t i = 0; i < all; ++i) {
    int64_t rest = i;
    for (size_t level = 0; level < counts.size(); rest /= counts[level++])
      example[level] = rest % counts[level];
    each(example);
  }
}

class VmapOfAll : public testing::TestWithParam<std::string> {
protected:
  std::shared_ptr<Device> device = Device::open(GetParam());
  std::mt19937 random{11};

  void SetUp() override { device->setThreads(1); } // programs of some kernels write one place, in their order
  bool isCpu() const { return GetParam().starts_with("cpu"); }

  /// A batch of a kernel: the axes of each argument for each level.
  struct Batch {
    std::vector<Axes> levels;
    std::vector<int64_t> counts;
  };

  /// Arguments of a batch, as its axes have them.
  std::vector<Examples> argumentsOf(const Kernel &kernel, const Batch &batch, Type storage, bool odd) {
    std::vector<Examples> result;
    const std::vector<Part> parts = partsOf(kernel, storage);
    for (size_t i = 0; i < parts.size(); ++i) {
      Axes levels;
      for (const Axes &axes : batch.levels)
        levels.push_back(axes[i]);
      result.emplace_back(device, parts[i], levels, batch.counts, odd, random);
    }
    return result;
  }

  static Arg makeArg(const Kernel::Parameter &parameter, const TensorRef &ref, double number) {
    return parameter.isView() ? Arg(ref) : Arg(number).as(ref.type);
  }

  void expectLoop(const Kernel &kernel, const Batch &batch, Type storage, bool odd) {
    const std::vector<Examples> arguments = argumentsOf(kernel, batch, storage, odd);
    const auto [whole, args] = makeBatched(kernel, batch, arguments);
    const Grid grid = isCpu() ? Grid{2, 1, 2} : Grid{1, 1, 1}; // of kernels whose programs may write one place
    Grid all = grid;
    for (const int64_t count : batch.counts)
      all[2] *= count;
    launch(*device, whole, all, args, configOf(kernel));
    device->synchronize();
    forExamples(batch.counts, [&](const std::vector<int64_t> &example) {
      std::vector<Arg> own;
      for (size_t i = 0; i < arguments.size(); ++i)
        own.push_back(makeArg(kernel.parameters[i], arguments[i].own(example), arguments[i].scalar(example)));
      launch(*device, kernel, grid, own, configOf(kernel));
    });
    device->synchronize();
    for (size_t i = 0; i < arguments.size(); ++i)
      EXPECT_TRUE(arguments[i].isEqual()) << kernel.called(i) << " differs";
  }

  /// vmap's kernel with its arguments.
  static std::pair<Kernel, std::vector<Arg>> makeBatched(const Kernel &kernel, const Batch &batch,
                                                         const std::vector<Examples> &arguments) {
    Kernel whole = kernel;
    for (const Axes &axes : batch.levels)
      whole = vmap(whole, axes);
    const std::vector<int64_t> first(batch.counts.size(), 0);
    std::vector<Arg> args;
    for (size_t i = 0; i < arguments.size(); ++i)
      args.push_back(makeArg(whole.parameters[i], arguments[i].whole(), arguments[i].scalar(first)));
    return {whole, args};
  }

  /// Small tiles of products, which compile soon.
  std::string configOf(const Kernel &kernel) const {
    std::string text;
    for (const Field &field : kernel.fields)
      if (field.name == "bm" || field.name == "bn" || field.name == "bk")
        text += (text.empty() ? "" : ",") + field.name + (isCpu() ? "=8" : "=16");
    return text;
  }

  /// The batch whose examples share every argument that they may. vmap decides that: it refuses to share a written
  /// argument.
  Batch sharing(const Kernel &kernel, bool odd) {
    Batch batch{{Axes(kernel.parameters.size())}, {examples}};
    for (size_t tries = 0; tries <= kernel.parameters.size(); ++tries) {
      if (std::ranges::none_of(batch.levels[0], [](const auto &axis) { return axis.has_value(); })) {
        batch.levels[0][0] = 0;
        continue;
      }
      const std::vector<Examples> arguments = argumentsOf(kernel, batch, f32, odd);
      const auto [whole, args] = makeBatched(kernel, batch, arguments);
      try {
        compile(*device, whole, args, configOf(kernel));
        return batch;
      } catch (const Error &error) {
        const std::string text = error.what(), before = "expected a view that vmap batches, but got ";
        const size_t at = text.find(before);
        if (at == std::string::npos)
          throw;
        const std::string name =
            text.substr(at + before.size(), text.find(',', at + before.size()) - at - before.size());
        for (size_t i = 0; i < kernel.parameters.size(); ++i)
          if (kernel.called(i) == name)
            batch.levels[0][i] = 0;
      }
    }
    ADD_FAILURE() << "vmap refuses every batch";
    return batch;
  }
};

// Examples along every dimension of every argument, each argument along another one. Except on the fast CPU, only the
// first and the last of these combinations run. Scalars of each example and shared ones; everything shared that may be;
// nested batches. In f32 and bf16.
TEST_P(VmapOfAll, RegisteredKernelsAreLoops) {
  for (int64_t number = 0; const Kernel *kernel : kernels()) {
    if (!test::Tier::asked().takes(number++, 3))
      continue;
    SCOPED_TRACE(kernel->name);
    const std::vector<Kernel::Parameter> &parameters = kernel->parameters;
    std::vector<int> ranks; // of a scalar 0
    for (const Part &part : partsOf(*kernel, f32))
      ranks.push_back(static_cast<int>(part.extents.size()));
    const int most = *std::ranges::max_element(ranks);
    const auto axesOf = [&](const auto &axis) {
      Axes axes;
      for (size_t i = 0; i < parameters.size(); ++i)
        axes.push_back(axis(static_cast<int>(i), ranks[i], parameters[i].isView()));
      return axes;
    };
    const bool isFast = GetParam() == "cpu";
    for (int turn = 0; turn <= most; turn += isFast ? 1 : most) {
      SCOPED_TRACE(testing::Message() << "turn " << turn);
      const Axes axes = axesOf([&](int i, int rank, bool isView) {
        return isView ? std::optional((turn + i) % (rank + 1)) : turn % 2 ? std::optional(0) : std::nullopt;
      });
      expectLoop(*kernel, {{axes}, {examples}}, turn % 2 ? bf16 : f32, !isCpu() || turn % 3 == 1);
    }
    {
      SCOPED_TRACE("shared");
      expectLoop(*kernel, sharing(*kernel, !isCpu()), f32, !isCpu());
    }
    if (most > 3)
      continue; // no room for two batches
    SCOPED_TRACE("nested");
    const Axes inner = axesOf([&](int i, int rank, bool) { return std::optional(isCpu() ? i % (rank + 1) : 0); });
    const Axes outer = axesOf(
        [&](int i, int rank, bool isView) { return std::optional(isCpu() && isView ? (i + 2) % (rank + 2) : 0); });
    expectLoop(*kernel, {{inner, outer}, {examples, 2}}, f32, !isCpu());
  }
}

/// A plan's tensors, with the examples of each along another dimension from `turn` on.
std::vector<Examples> tensorsOf(const std::shared_ptr<Device> &device, const test::PlanOf &plan, int turn,
                                const std::vector<int64_t> &counts, std::mt19937 &random) {
  std::vector<Examples> result;
  int i = 0;
  for (const Part &part : plan.parts) {
    Axes levels;
    for (size_t level = 0; level < counts.size(); ++level) {
      const int room = static_cast<int>(part.extents.size() + level) + 1;
      levels.push_back(part.isShared ? std::nullopt : std::optional(turn == 0 ? 0 : (turn + i) % room));
    }
    ++i;
    result.emplace_back(device, part, levels, counts, false, random);
  }
  return result;
}

void runWith(Device &device, const Plan &plan, const std::shared_ptr<Device> &owner) {
  const Tensor workspace(owner, f32, {cdiv(plan.workspaceBytes, 4)});
  run(device, plan, workspace.ref());
  device.synchronize();
}

// Every plan with all the launches and the workspace that it has on this machine.
TEST_P(VmapOfAll, PlansAreLoops) {
  for (const test::PlanOf &plan : test::everyPlan(isCpu() ? 1 : 16)) {
    SCOPED_TRACE(plan.name);
    const auto one = [&](const std::vector<TensorRef> &t) { return plan.one(device->target(), t); };
    for (int turn = 0; turn < (GetParam() == "cpu" ? 2 : 1); ++turn) {
      SCOPED_TRACE(testing::Message() << "turn " << turn);
      const std::vector<int64_t> counts = {3};
      const std::vector<Examples> tensors = tensorsOf(device, plan, turn, counts, random);
      std::vector<Batched> batch;
      for (size_t i = 0; i < tensors.size(); ++i) {
        const int room = static_cast<int>(plan.parts[i].extents.size()) + 1;
        batch.push_back({tensors[i].whole(), plan.parts[i].isShared
                                                 ? std::nullopt
                                                 : std::optional(turn == 0 ? 0 : (turn + static_cast<int>(i)) % room)});
      }
      std::vector<Plan> loop;
      try {
        forExamples(counts, [&](const std::vector<int64_t> &example) {
          std::vector<TensorRef> own;
          for (const Examples &tensor : tensors)
            own.push_back(tensor.own(example));
          loop.push_back(one(own));
        });
      } catch (const Error &) {
        ASSERT_NE(turn, 0); // dense tensors must do
        continue;           // this plan takes no others
      }
      runWith(*device, vmap(one, batch), device);
      for (const Plan &own : loop)
        runWith(*device, own, device);
      for (size_t i = 0; i < tensors.size(); ++i)
        EXPECT_TRUE(tensors[i].isEqual()) << "tensor " << i << " differs";
    }
  }
}

// A plan of a batch is a plan: with its workspace it is batched once more.
TEST_P(VmapOfAll, PlansNest) {
  for (const test::PlanOf &plan : test::everyPlan(isCpu() ? 1 : 16)) {
    if (plan.name != "softmax" && plan.name != "layernorm_backward" && plan.name != "column_sums" &&
        plan.name != "weight_gradient_split")
      continue;
    SCOPED_TRACE(plan.name);
    const auto one = [&](const std::vector<TensorRef> &t) { return plan.one(device->target(), t); };
    const std::vector<int64_t> counts = {3, 2};
    const std::vector<Examples> tensors = tensorsOf(device, plan, 0, counts, random);
    const auto axisOf = [&](size_t i) { return plan.parts[i].isShared ? std::nullopt : std::optional(0); };
    const auto inner = [&](const std::vector<TensorRef> &t) {
      std::vector<Batched> batch;
      for (size_t i = 0; i < t.size(); ++i)
        batch.push_back({t[i], axisOf(i)});
      return vmap(one, batch);
    };
    std::vector<Batched> batch;
    for (size_t i = 0; i < tensors.size(); ++i)
      batch.push_back({tensors[i].whole(), axisOf(i)});
    runWith(*device, vmap(inner, batch), device);
    forExamples(counts, [&](const std::vector<int64_t> &example) {
      std::vector<TensorRef> own;
      for (const Examples &tensor : tensors)
        own.push_back(tensor.own(example));
      runWith(*device, one(own), device);
    });
    for (size_t i = 0; i < tensors.size(); ++i)
      EXPECT_TRUE(tensors[i].isEqual()) << "tensor " << i << " differs";
  }
}

// Every kernel is launched by some plan above; the test prints the others.
TEST(VmapOfEveryPlan, LaunchesEveryRegisteredKernel) {
  std::set<std::string> names;
  for (const Target &target : {Target{"cpu", CpuFacts{}}, Target{"gpu", GpuFacts{}}})
    for (const test::PlanOf &plan : test::everyPlan(16)) {
      std::vector<TensorRef> tensors;
      for (const Part &part : plan.parts)
        tensors.push_back(TensorRef::dense(nullptr, part.type, part.extents));
      for (const Launch &launch : plan.one(target, tensors).launches)
        names.insert(launch.kernel->name);
    }
  for (const Kernel *kernel : kernels())
    EXPECT_EQ(names.count(kernel->name), 1u) << kernel->name;
}

KILN_ON_DEVICES(VmapOfAll);

} // namespace
} // namespace kiln
