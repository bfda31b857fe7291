// Runs operators once, and plans repeatedly.

#include "tools/libkiln/handles.h"
#include "tools/libkiln/operators.h"

#include <fmt/format.h>

using namespace kiln;
using namespace kiln::c;

struct kiln_plan {
  kiln_device *device;
  std::vector<Arg> arguments;
  Tensor workspace;
  std::vector<Tensor> kept; // other memory that its launches read
  PreparedPlan launches;
};

/// The operands of an operator's call. Throws Error for too few or too many, for one that is missing, a scalar, and a
/// read-only one that is written.
static Operator::Tensors tensorsOf(const Operator &op, const std::vector<Arg> &arguments, const kiln_argument *given) {
  if (arguments.size() != op.operands.size())
    throw Error(fmt::format("'{}': expected {} operands, but got {}", op.name, op.operands.size(), arguments.size()));
  Operator::Tensors tensors;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Operator::Operand &operand = op.operands[i];
    if (arguments[i].kind == Arg::Kind::none) {
      if (!operand.isOptional)
        throw Error(fmt::format("'{}': expected a tensor for '{}', but got none", op.name, operand.name));
      tensors.emplace_back();
      continue;
    }
    if (arguments[i].kind != Arg::Kind::tensor)
      throw Error(
          fmt::format("'{}': expected a tensor for '{}', but got {}", op.name, operand.name, textOf(arguments[i])));
    if (operand.isWritten && given[i].is_read_only)
      throw Error(fmt::format("'{}': expected memory that may be written for '{}', but got a read-only tensor", op.name,
                              operand.name));
    tensors.emplace_back(arguments[i].ref);
  }
  return tensors;
}

/// The plan, with the device's mutex held.
static std::unique_ptr<kiln_plan> makePlan(kiln_device *device, const char *name, const kiln_argument *arguments,
                                           size_t count, const char *options) {
  const Operator &op = operatorNamed(name);
  auto plan = std::make_unique<kiln_plan>(kiln_plan{device, {}, {}, {}, {}});
  setArgs(plan->arguments, *device, arguments, count);
  OperatorOptions chosen;
  parseOptions(op.name, op.fields, options ? options : "", &chosen);
  OperatorPlan made = op.plan(device->device, tensorsOf(op, plan->arguments, arguments), chosen);
  plan->kept = std::move(made.kept);
  if (made.plan.workspaceBytes > 0)
    plan->workspace = Tensor(device->device, i8, {made.plan.workspaceBytes});
  plan->launches = prepare(*device->device, made.plan, plan->workspace);
  return plan;
}

static void runPlan(const kiln_plan &plan) {
  const Loan loan(*plan.device, plan.arguments);
  plan.launches.run();
}

const char *kiln_operators(void) {
  static const std::string text = [] {
    const OperatorOptions defaults;
    std::string lines;
    for (const Operator &op : operators()) {
      std::string operands, options;
      bool isWritten = false;
      for (const Operator::Operand &operand : op.operands) {
        operands += operand.isWritten && !isWritten ? " -> " : operands.empty() ? "" : ", ";
        isWritten = operand.isWritten;
        operands += operand.name + (operand.isOptional ? "?" : "");
      }
      for (const Field &field : op.fields)
        options += (options.empty() ? "; " : ", ") + field.name + "=" + field.print(&defaults);
      lines += fmt::format("{}: {}{}\n", op.name, operands, options);
    }
    return lines;
  }();
  return text.c_str();
}

kiln_status kiln_operate(kiln_device *device, const char *name, const kiln_argument *arguments, size_t count,
                         const char *options) {
  return guarded([&] {
    expectGiven(device, "a device");
    expectGiven(name, "an operator's name");
    const std::lock_guard lock(device->mutex);
    runPlan(*makePlan(device, name, arguments, count, options));
  });
}

kiln_status kiln_plan_make(kiln_device *device, const char *name, const kiln_argument *arguments, size_t count,
                           const char *options, kiln_plan **plan) {
  return guarded([&] {
    expectGiven(device, "a device");
    expectGiven(name, "an operator's name");
    expectGiven(plan, "a place for the plan");
    const std::lock_guard lock(device->mutex);
    *plan = makePlan(device, name, arguments, count, options).release();
  });
}

kiln_status kiln_plan_run(kiln_plan *plan) {
  return guarded([&] {
    expectGiven(plan, "a plan");
    const std::lock_guard lock(plan->device->mutex);
    runPlan(*plan);
  });
}

void kiln_plan_close(kiln_plan *plan) {
  if (!plan)
    return;
  const std::lock_guard lock(plan->device->mutex);
  delete plan;
}
