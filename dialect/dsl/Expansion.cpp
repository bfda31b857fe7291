// Kernels with optional views and lists of views, in the form for the numbers of views of a launch.
//
//     void linear(View x, View w, std::optional<View> bias, View out)
//     {x, w, nothing, out}   (x, w, out)
//     {x, w, b, out}         (x, w, bias, out)
//
// Each form is a kernel of its own, with its own identity in caches and one parameter for each view. It calls the
// function with the optionals and vectors of these views.

#include "dialect/dsl/Expansion.h"
#include "dialect/dsl/Plan.h"

#include <algorithm>

namespace kiln {

using Kind = Kernel::Parameter::Kind;

std::shared_ptr<MadeKernels> noKernels() { return std::make_shared<MadeKernels>(); }

std::string identifierOf(const std::string &name) {
  std::string identifier = name;
  std::replace(identifier.begin(), identifier.end(), '[', '_');
  std::erase(identifier, ']');
  return identifier;
}

static Error expected(const Kernel &kernel, const std::string &what, const std::string &got) {
  return Error("kernel '" + kernel.name + "': expected " + what + ", but got " + got);
}

/// One parameter for each view and scalar.
static std::vector<Kernel::Parameter> parametersOf(const Kernel &kernel, const std::vector<size_t> &counts) {
  std::vector<Kernel::Parameter> parameters;
  size_t next = 0; // in counts
  for (const Kernel::Parameter &parameter : kernel.parameters) {
    const size_t count = parameter.isVariadic() ? counts[next++] : 1;
    for (size_t i = 0; i < count; ++i) {
      Kernel::Parameter &one = parameters.emplace_back(parameter);
      one.kind = parameter.isView() ? Kind::view : Kind::scalar;
      if (parameter.kind == Kind::list)
        one.name += "[" + std::to_string(i) + "]";
    }
  }
  return parameters;
}

const Kernel &expanded(const Kernel &kernel, const std::vector<size_t> &counts) {
  const std::lock_guard lock(kernel.made->mutex);
  if (const auto found = kernel.made->expanded.find(counts); found != kernel.made->expanded.end())
    return found->second;
  Kernel form = kernel;
  form.identity = Kernel().identity;
  form.made = noKernels();
  form.parameters = parametersOf(kernel, counts);
  form.namedExtents = findNamedExtents(form.parameters);
  form.counts = counts;
  for (std::vector<std::optional<int>> &axes : form.batches) {
    axes = repeated(axes, kernel.parameters, counts);
    if (std::none_of(axes.begin(), axes.end(), [](const auto &axis) { return axis.has_value(); }))
      throw expected(kernel, "an argument with examples", "none");
  }
  return kernel.made->expanded.emplace(counts, std::move(form)).first->second;
}

// --- Launches --------------------------------------------------------------------------------------------------------

/// Appends the views of an argument for an optional view or a list; their number.
static size_t appendViews(const Kernel &kernel, size_t index, const Arg &arg, std::vector<Arg> &args) {
  const bool isList = kernel.parameters[index].kind == Kind::list;
  if (isList ? arg.kind != Arg::Kind::list : !arg.isView() && arg.kind != Arg::Kind::none)
    throw expected(kernel, kernel.called(index) + " to be a " + (isList ? "list of tensors" : "tensor or nothing"),
                   textOf(arg));
  if (isList)
    args.insert(args.end(), arg.items.begin(), arg.items.end());
  else if (arg.isView())
    args.push_back(arg);
  return isList ? arg.items.size() : arg.isView();
}

Expanded expanded(const Kernel &kernel, const std::vector<Arg> &args) {
  if (!kernel.isVariadic())
    return {&kernel, args};
  if (args.size() != kernel.parameters.size())
    throw expected(kernel, std::to_string(kernel.parameters.size()) + " arguments", std::to_string(args.size()));
  std::vector<Arg> each;
  std::vector<size_t> counts;
  for (size_t i = 0; i < args.size(); ++i) {
    if (kernel.parameters[i].isVariadic())
      counts.push_back(appendViews(kernel, i, args[i], each));
    else
      each.push_back(args[i]);
  }
  return {&expanded(kernel, counts), std::move(each)};
}

Launch expanded(const Launch &launch) {
  Launch result = launch;
  if (!launch.kernel || !launch.kernel->isVariadic())
    return result;
  const auto expand = [&](std::vector<Arg> &args) {
    Expanded form = expanded(*launch.kernel, args);
    args = std::move(form.args);
    return form.kernel;
  };
  result.kernel = expand(result.args);
  for (Launch::Problem &other : result.others)
    if (expand(other.args) != result.kernel)
      throw expected(*launch.kernel, "equally many views in all problems of a grouped launch", "other numbers");
  return result;
}

Plan expanded(const Plan &plan) {
  Plan result{.launches = {}, .workspaceBytes = plan.workspaceBytes};
  for (const Launch &launch : plan.launches)
    result.launches.push_back(expanded(launch));
  return result;
}

} // namespace kiln
