// Finds reachable functions by operands, target lists, and initialisers of variables.

#include "runtime/simulator/Reach.h"

#include "dialect/dsl/Types.h"

#include <algorithm>

namespace kiln::simulator {

using ptx::Operand;

namespace {
/// The functions reached so far.
class Reached {
public:
  explicit Reached(const ptx::Module &module) : module(module), variables(module.variables.size(), false) {}

  std::vector<int> from(int entry) {
    add(entry);
    for (size_t i = 0; i < functions.size(); ++i) {
      const ptx::Function &function = module.functions[static_cast<size_t>(functions[i])];
      if (!function.fault.empty())
        throw Error(function.fault);
      for (const Operand &operand : function.pool)
        if (operand.kind == Operand::Kind::function)
          add(operand.index);
        else if (operand.kind == Operand::Kind::variable || operand.base == Operand::Kind::variable)
          addHeldBy(operand.isLocal ? function.variables[static_cast<size_t>(operand.index)] : global(operand.index));
      for (const std::vector<int> &targets : function.callTargets)
        for (const int target : targets)
          add(target);
    }
    return functions;
  }

private:
  const ptx::Variable &global(int index) const { return module.variables[static_cast<size_t>(index)]; }
  void add(int function) {
    if (std::find(functions.begin(), functions.end(), function) == functions.end())
      functions.push_back(function);
  }
  void addHeldBy(const ptx::Variable &variable) {
    std::vector<const ptx::Variable *> pending = {&variable};
    while (!pending.empty()) {
      const ptx::Variable &holder = *pending.back();
      pending.pop_back();
      for (const ptx::Initialiser &value : holder.values) {
        if (value.function >= 0)
          add(value.function);
        if (value.variable >= 0 && !variables[static_cast<size_t>(value.variable)]) {
          variables[static_cast<size_t>(value.variable)] = true;
          pending.push_back(&global(value.variable));
        }
      }
    }
  }

  const ptx::Module &module;
  std::vector<int> functions;
  std::vector<bool> variables; // visited through another one
};
} // namespace

std::vector<int> reachableFrom(const ptx::Module &module, int entry) { return Reached(module).from(entry); }

} // namespace kiln::simulator
