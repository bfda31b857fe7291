// vmap: a kernel, or a plan, for a batch of examples.
//
// The kernel of a batch selects example b of each batched view, and calls the function of the kernel of one example.
// Grid axis 2 has z programs for each example, with z = num_programs(2) / examples: b = program_id(2) / z. The traced
// kernel is an ordinary one.

#include "dialect/dsl/Expansion.h"
#include "dialect/dsl/Plan.h"
#include "dialect/dsl/Tracer.h"

#include "llvm/ADT/STLExtras.h"

namespace kiln {

/// The batch dimension of each argument, if it has one.
using ExampleAxes = std::vector<std::optional<int>>;

// --- Tracing ---------------------------------------------------------------------------------------------------------

Example::Example(const Tile &program, const Tile &programs, llvm::SmallVector<int> shared)
    : program(program), programs(programs), shared(std::move(shared)), outer(Tracer::current().example) {
  Tracer::current().example = this;
}

Example::~Example() { Tracer::current().example = outer; }

namespace {
/// The kernel of one example, and the batch dimensions.
struct OfBatch {
  std::vector<Kernel::Parameter> parameters; // of the kernel of one example
  decltype(Kernel::call) call;
  ExampleAxes axes;
  Loc loc;

  void operator()(const std::vector<View> &views, const std::vector<Tile> &scalars, const std::vector<size_t> &counts,
                  const std::string &config) const {
    const ExampleAxes ofViews = axesOfViews(counts);
    checkRanks(views, ofViews);
    const auto first = llvm::find_if(ofViews, [](const auto &axis) { return axis.has_value(); }) - ofViews.begin();
    const Tile examples = views[first].dim(*ofViews[first], loc), all = num_programs(2, loc),
               number = program_id(2, loc), programs = At(all, loc) / At(examples, loc),
               example = At(number, loc) / At(programs, loc), program = At(number, loc) % At(programs, loc);
    std::vector<View> ownViews;
    std::vector<Tile> ownScalars;
    llvm::SmallVector<int> shared;
    size_t view = 0, scalar = 0;
    for (auto [parameter, axis] :
         llvm::zip(repeated(parameters, parameters, counts), repeated(axes, parameters, counts))) {
      if (!parameter.isView()) {
        ownScalars.push_back(axis ? load(views[view++], {At(example, loc)}, {}, Padding::zero, loc)
                                  : scalars[scalar++]);
        continue;
      }
      if (!axis)
        shared.push_back(views[view].index());
      ownViews.push_back(axis ? views[view].select(*axis, At(example, loc), loc) : views[view]);
      ++view;
    }
    const Example scope(program, programs, std::move(shared));
    call(ownViews, ownScalars, counts, config);
  }

private:
  /// The batch dimensions of views.
  ExampleAxes axesOfViews(const std::vector<size_t> &counts) const {
    ExampleAxes result;
    for (auto [parameter, axis] :
         llvm::zip(repeated(parameters, parameters, counts), repeated(axes, parameters, counts)))
      if (parameter.isView() || axis)
        result.push_back(axis);
    return result;
  }
  void checkRanks(const std::vector<View> &views, const ExampleAxes &ofViews) const {
    Call call("vmap", loc);
    bool isFine = true;
    for (auto [view, axis] : llvm::zip(views, ofViews)) {
      if (axis && *axis >= view.rank()) {
        call.expected() << call.tracer.kernel.called(view.index()) << " to have a dimension " << *axis
                        << " with its examples, but got rank " << view.rank();
        isFine = false;
      }
    }
    if (!isFine)
      throw Abandoned();
  }
};
} // namespace

// --- Kernels ---------------------------------------------------------------------------------------------------------

static Error wrong(Loc loc, const std::string &text) {
  return Error(loc.file + (":" + std::to_string(loc.line)) + ": error: 'vmap'" + text);
}
static Error expected(Loc loc, const std::string &text) { return wrong(loc, " expected " + text); }

static void checkAxes(const Kernel &kernel, const ExampleAxes &axes, Loc loc) {
  const std::string of = "kernel '" + kernel.name + "'";
  if (axes.size() != kernel.parameters.size())
    throw expected(loc, "an axis, or none, for each of the " + std::to_string(kernel.parameters.size()) +
                            " arguments of " + of + ", but got " + std::to_string(axes.size()));
  if (llvm::none_of(axes, [](const auto &axis) { return axis.has_value(); }))
    throw expected(loc, "an argument of " + of + " with examples, but got none");
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool isView = kernel.parameters[i].isView();
    if (axes[i] && (*axes[i] < 0 || (!isView && *axes[i] != 0)))
      throw expected(loc, (isView ? "a dimension from 0 for " : "dimension 0 for the scalar ") + kernel.called(i) +
                              " of " + of + ", but got " + std::to_string(*axes[i]));
  }
}

/// The batch dimensions of a kernel that is batched already, with one more for this batch.
static std::vector<ExampleAxes> batchesOf(const Kernel &kernel, const ExampleAxes &axes) {
  std::vector<ExampleAxes> batches = kernel.batches;
  for (ExampleAxes &batch : batches)
    for (auto [inner, outer] : llvm::zip(batch, axes))
      if (inner && outer && *outer <= *inner)
        ++*inner;
  batches.push_back(axes);
  return batches;
}

/// The kernel of a batch. It exists as long as the kernel of one example.
static const Kernel &batchOf(const Kernel &kernel, const ExampleAxes &axes, Loc loc) {
  checkAxes(kernel, axes, loc);
  const std::lock_guard lock(kernel.made->mutex);
  if (const auto found = kernel.made->batches.find(axes); found != kernel.made->batches.end())
    return found->second;
  Kernel batch;
  batch.name = "vmap_" + kernel.name;
  batch.loc = kernel.loc;
  batch.parameters = kernel.parameters;
  for (auto [parameter, axis] : llvm::zip(batch.parameters, axes))
    if (axis) {
      if (!parameter.isView())
        parameter.kind = Kernel::Parameter::Kind::view;
      parameter.about += (parameter.about.empty() ? "" : ", ") + ("examples along " + std::to_string(*axis));
    }
  batch.fields = kernel.fields;
  batch.configText = kernel.configText;
  batch.allows = kernel.allows;
  batch.batches = batchesOf(kernel, axes);
  batch.counts = kernel.counts;
  batch.call = OfBatch{kernel.parameters, kernel.call, axes, loc};
  return kernel.made->batches.emplace(axes, std::move(batch)).first->second;
}

Kernel vmap(const Kernel &kernel, std::vector<std::optional<int>> axes, Loc loc) { return batchOf(kernel, axes, loc); }

// --- Plans -----------------------------------------------------------------------------------------------------------

namespace {
/// A batched tensor's first example, and the distance to the next.
class Memory {
public:
  Memory(size_t number, const Batched &tensor, const TensorRef &first)
      : number(number), stride(tensor.all.strides[*tensor.axis] * bytesOf(first.type)), base(addressOf(first)),
        size(bytesOf(first.type)) {
    for (auto [extent, step] : llvm::zip(first.extents, first.strides)) {
      if (step < 0)
        base += static_cast<uintptr_t>((extent - 1) * step * size);
      if (step != 0 && extent > 1)
        steps.emplace_back(std::abs(step) * size, extent);
    }
    llvm::sort(steps, std::greater<>());
  }

  /// Whether the (nonempty) tensor begins at an element of the first example, not between its elements, where other
  /// examples may be.
  bool holds(const TensorRef &ref) const {
    return ref.data && addressOf(ref) >= base && reaches(static_cast<int64_t>(addressOf(ref) - base), 0);
  }

  size_t number;  // index of the tensor
  int64_t stride; // in bytes

private:
  static uintptr_t addressOf(const TensorRef &ref) { return reinterpret_cast<uintptr_t>(ref.data); }

  /// Whether an offset in bytes is a sum of steps along the dimensions from `from` on.
  bool reaches(int64_t bytes, size_t from) const {
    int64_t most = 0; // largest offset of the following dimensions
    for (size_t i = from + 1; i < steps.size(); ++i)
      most += steps[i].first * (steps[i].second - 1);
    if (from == steps.size())
      return bytes < size;
    const auto [step, extent] = steps[from];
    for (int64_t i = std::min(bytes / step, extent - 1); i >= 0 && bytes - i * step < most + size; --i)
      if (reaches(bytes - i * step, from + 1))
        return true;
    return false;
  }

  uintptr_t base;
  int64_t size;                                         // bytes of an element
  llvm::SmallVector<std::pair<int64_t, int64_t>> steps; // nonzero strides in bytes, and extents
};
} // namespace

/// The distance between examples of a launch's tensor, in bytes; none if all examples share it.
static std::optional<int64_t> strideOf(const std::vector<Memory> &batched, const TensorRef &ref, Loc loc) {
  std::optional<int64_t> stride;
  for (const Memory &memory : batched) {
    if (!memory.holds(ref))
      continue;
    if (stride && *stride != memory.stride)
      throw wrong(loc, ": a tensor of a launch lies in two batched tensors, whose examples are " +
                           std::to_string(*stride) + " and " + std::to_string(memory.stride) + " bytes apart");
    stride = memory.stride;
  }
  return stride;
}

/// Checks that no shared tensor begins in the first example, because a launch could not distinguish the two.
static void checkApart(const std::vector<Batched> &tensors, const std::vector<Memory> &batched, Loc loc) {
  for (const auto &[number, tensor] : llvm::enumerate(tensors))
    for (const Memory &memory : batched)
      if (!tensor.axis && tensor.all.count() > 0 && memory.holds(tensor.all))
        throw wrong(loc, ": unbatched tensor " + std::to_string(number) +
                             " begins in the first example of batched tensor " + std::to_string(memory.number) +
                             "; give it memory of its own, or batch it");
}

/// The number of examples, which all batched tensors must agree on.
static int64_t examplesOf(const std::vector<Batched> &tensors, Loc loc) {
  std::optional<int64_t> examples;
  for (const auto &[all, axis] : tensors) {
    if (!axis)
      continue;
    if (*axis < 0 || *axis >= all.rank())
      throw expected(loc, "a dimension below the rank " + std::to_string(all.rank()) +
                              " of a batched tensor, but got " + std::to_string(*axis));
    if (examples && *examples != all.extents[*axis])
      throw expected(loc, "the same number of examples in each batched tensor, but got " + std::to_string(*examples) +
                              " and " + std::to_string(all.extents[*axis]));
    examples = all.extents[*axis];
  }
  if (!examples)
    throw expected(loc, "a tensor with examples, but got none");
  return *examples;
}

Plan vmap(const std::function<Plan(const std::vector<TensorRef> &)> &one, const std::vector<Batched> &tensors,
          Loc loc) {
  const int64_t examples = examplesOf(tensors, loc);
  if (examples == 0)
    return {};
  std::vector<TensorRef> firsts;
  std::vector<Memory> batched;
  for (const auto &[number, tensor] : llvm::enumerate(tensors)) {
    firsts.push_back(tensor.axis ? tensor.all.select(*tensor.axis, 0) : tensor.all);
    if (tensor.axis && firsts.back().count() > 0)
      batched.emplace_back(number, tensor, firsts.back());
  }
  checkApart(tensors, batched, loc);
  Plan plan = expanded(ungrouped(one(firsts)));
  constexpr int64_t line = 64; // alignment of an example's workspace
  const int64_t workspace = (plan.workspaceBytes + line - 1) / line * line;
  for (Launch &launch : plan.launches) {
    ExampleAxes axes(launch.args.size());
    const auto isEmpty = [](const Arg &arg) { return arg.kind != Arg::Kind::scalar && arg.ref.count() == 0; };
    const auto makeOwn = [&](size_t i, int64_t stride) {
      TensorRef &ref = launch.args[i].ref;
      axes[i] = 0;
      ref.extents.insert(ref.extents.begin(), examples);
      ref.strides.insert(ref.strides.begin(), stride / bytesOf(ref.type));
    };
    for (const auto &[i, arg] : llvm::enumerate(launch.args)) {
      if (arg.kind == Arg::Kind::scalar || isEmpty(arg))
        continue;
      if (const std::optional<int64_t> stride =
              arg.kind == Arg::Kind::workspace ? std::optional(workspace) : strideOf(batched, arg.ref, loc))
        makeOwn(i, *stride);
    }
    if (llvm::none_of(axes, [](const auto &axis) { return axis.has_value(); }))
      continue; // it depends on no example, so it is launched once
    for (size_t i = 0; i < launch.args.size(); ++i)
      if (!axes[i] && isEmpty(launch.args[i])) // it cannot be assigned to an example, and stores to it have no effect
        makeOwn(i, 0);
    launch.kernel = &batchOf(*launch.kernel, axes, loc);
    launch.grid[2] *= examples;
    launch.flops *= static_cast<double>(examples);
  }
  plan.workspaceBytes = workspace * examples;
  return plan;
}

} // namespace kiln
