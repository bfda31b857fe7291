// A chain of tables from the innermost braces outwards. `%r<10>` is one entry `%r`, whose registers are created at
// first use, so that a declaration of a million registers costs nothing.

#include "runtime/simulator/ptx/Scopes.h"

#include <charconv>
#include <tuple>

namespace kiln::ptx {

void Scopes::open() {
  scopes.push_back({current, {}, {}, {}});
  current = static_cast<int>(scopes.size()) - 1;
}

int Scopes::makeRegister(std::string_view name, Type type, int number) {
  function.registers.push_back({name, type, number});
  return static_cast<int>(function.registers.size()) - 1;
}

bool Scopes::addRegister(std::string_view name, Type type) {
  if (name == "_") { // no operand can refer to it
    makeRegister(name, type, -1);
    return true;
  }
  const auto [at, isNew] = top().names.try_emplace(name, Name{Name::Kind::reg, -1, 0, type});
  if (isNew)
    at->second.index = makeRegister(name, type, -1);
  return isNew;
}

bool Scopes::addRegisters(std::string_view prefix, int64_t count, Type type) {
  return top().ranges.try_emplace(prefix, Name{Name::Kind::range, -1, count, type}).second;
}

bool Scopes::addVariable(Variable variable) {
  const int index = static_cast<int>(function.variables.size());
  if (variable.name != "_" &&
      !top().names.try_emplace(variable.name, Name{Name::Kind::variable, index, 0, variable.type}).second)
    return false;
  function.variables.push_back(std::move(variable));
  return true;
}

Operand Scopes::find(std::string_view name) {
  size_t stem = name.size();
  while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
    --stem;
  for (int scope = current; scope >= 0; scope = scopes[static_cast<size_t>(scope)].parent) {
    auto &[parent, names, ranges, labels] = scopes[static_cast<size_t>(scope)];
    auto at = names.find(name);
    if (at != names.end()) {
      Operand operand;
      operand.kind = at->second.kind == Name::Kind::reg ? Operand::Kind::reg : Operand::Kind::variable;
      operand.isLocal = true;
      operand.index = at->second.index;
      return operand;
    }
    // Creates a member of a range. Every split of the trailing digits may match a range: `%a1<3>` has `%a12`.
    for (size_t split = stem; split < name.size(); ++split) {
      at = ranges.find(name.substr(0, split));
      if (at == ranges.end() || (name[split] == '0' && split + 1 < name.size()))
        continue;
      int64_t number = 0;
      const auto [stop, failure] = std::from_chars(name.data() + split, name.data() + name.size(), number);
      if (failure != std::errc() || number >= at->second.count)
        continue;
      Operand operand;
      operand.kind = Operand::Kind::reg;
      operand.isLocal = true;
      operand.index = makeRegister(name, at->second.type, static_cast<int>(number));
      names.emplace(name, Name{Name::Kind::reg, operand.index, 0, at->second.type});
      return operand;
    }
  }
  return {};
}

int Scopes::label(std::string_view name) {
  const auto [at, isNew] = top().labels.try_emplace(name, static_cast<int>(function.labels.size()));
  if (isNew)
    function.labels.push_back(-1);
  return at->second;
}

bool Scopes::placeLabel(std::string_view name) {
  int &place = function.labels[static_cast<size_t>(label(name))];
  if (place >= 0)
    return false;
  place = static_cast<int>(function.instructions.size());
  return true;
}

void Scopes::addBranchTargets(std::string_view name, std::vector<int> labels) {
  targets[name] = {Operand::Kind::list, static_cast<int>(function.branchTargets.size())};
  function.branchTargets.push_back(std::move(labels));
}

void Scopes::addCallTargets(std::string_view name, std::vector<int> functions) {
  targets[name] = {Operand::Kind::targets, static_cast<int>(function.callTargets.size())};
  function.callTargets.push_back(std::move(functions));
}

void Scopes::addPrototype(std::string_view name, Prototype prototype) {
  targets[name] = {Operand::Kind::prototype, static_cast<int>(function.prototypes.size())};
  function.prototypes.push_back(std::move(prototype));
}

Operand Scopes::findTargets(std::string_view name) const {
  Operand operand;
  if (const auto at = targets.find(name); at != targets.end())
    std::tie(operand.kind, operand.index) = at->second;
  return operand;
}

std::string_view Scopes::resolveLabels() {
  for (const Scope &scope : scopes)
    for (const auto &[name, index] : scope.labels) {
      int &place = function.labels[static_cast<size_t>(index)];
      for (int outer = scope.parent; place < 0 && outer >= 0; outer = scopes[static_cast<size_t>(outer)].parent)
        if (const auto at = scopes[static_cast<size_t>(outer)].labels.find(name);
            at != scopes[static_cast<size_t>(outer)].labels.end())
          place = function.labels[static_cast<size_t>(at->second)];
      if (place < 0)
        return name;
    }
  return {};
}

} // namespace kiln::ptx
