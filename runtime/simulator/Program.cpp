// A kernel's program: the functions that it reaches, by operands, target lists and initialisers of variables; the
// memory of variables; and the code of each function.

#include "dialect/dsl/Nearest.h"
#include "runtime/simulator/Access.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Targets.h"

#include "dialect/dsl/Types.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;

int Program::codeAt(uint64_t address) const {
  const uint64_t number = (address & ~windowMask) >> 4;
  const bool isFunction =
      (address & windowMask) == functionWindow && (address & 15) == 0 && number < codeOfFunction.size();
  return isFunction ? codeOfFunction[number] : -1;
}

ptx::Place Program::placeOf(int line) const {
  for (const Code &each : codes)
    for (const ptx::Place &place : each.places)
      if (place.line == line)
        return place;
  return {.line = line};
}

std::string Program::textOf(const ptx::Place &place) const {
  if (place.file > 0 && static_cast<size_t>(place.file) < module->files.size())
    return fmt::format("{}:{}", module->files[static_cast<size_t>(place.file)], place.sourceLine);
  return fmt::format("PTX line {}", place.line);
}

// --- Reachable functions -------------------------------------------------------------------------------------------

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

// --- Storage -------------------------------------------------------------------------------------------------------

void Storage::initialise(char *to, const ptx::Variable &variable) {
  const int bytes = std::max(1, ptx::bytesOf(variable.type));
  int64_t at = 0;
  for (const ptx::Initialiser &value : variable.values) {
    uint64_t bits = value.bits;
    if (value.variable >= 0)
      bits += static_cast<uint64_t>(addressOf(-1, value.variable));
    if (value.function >= 0)
      bits = functionAddress(value.function);
    if (at + bytes > variable.bytes())
      throw Error(fmt::format("PTX line {}: expected at most {} values for variable '{}', but got {}", variable.line,
                              variable.count, variable.name, variable.values.size()));
    std::memcpy(to + at, &bits, static_cast<size_t>(std::min(bytes, 8)));
    at += bytes;
  }
}

const ptx::Variable &Storage::variableAt(std::pair<int, int> key) const {
  return key.first < 0 ? module.variables[static_cast<size_t>(key.second)]
                       : module.functions[static_cast<size_t>(key.first)].variables[static_cast<size_t>(key.second)];
}

Storage::Storage(const ptx::Module &module, Memory &memory, const std::vector<int> &functions)
    : module(module), memory(memory) {
  std::vector<std::pair<int, int>> dynamic;
  for (const int function : functions)
    for (const Operand &operand : module.functions[static_cast<size_t>(function)].pool) {
      if (operand.kind != Operand::Kind::variable && operand.base != Operand::Kind::variable)
        continue;
      const std::pair key(operand.isLocal ? function : -1, operand.index);
      const ptx::Variable &variable = variableAt(key);
      if (variable.space != Space::shared || !addresses.try_emplace(key, 0).second)
        continue;
      if (variable.count == 0) {
        dynamic.push_back(key);
        continue;
      }
      addresses[key] = shared = roundUp(shared, variable.align);
      shared += variable.bytes();
      if (shared > maxStaticSharedBytes)
        throw Error(
            fmt::format("PTX line {}: expected at most {} bytes of static shared memory, but got {} with variable '{}'",
                        variable.line, maxStaticSharedBytes, shared, variable.name));
    }
  staticShared = shared;
  for (const std::pair<int, int> &key : dynamic) // up to where dynamic memory may begin
    staticShared = roundUp(staticShared, variableAt(key).align);
  if (!dynamic.empty())
    shared = roundUp(shared, 1024);
  for (const std::pair<int, int> &key : dynamic)
    addresses[key] = shared;
}

int64_t Storage::addressOf(int function, int index) {
  const auto [at, isNew] = addresses.try_emplace({function, index}, 0);
  if (!isNew)
    return at->second;
  const ptx::Variable &variable = variableAt({function, index});
  if (variable.isExternal)
    throw Error(fmt::format("PTX line {}: expected a definition of variable '{}', but it is only declared",
                            variable.line, variable.name));
  char *storage = static_cast<char *>(memory.allocate(variable.bytes(), variable.space == Space::constant));
  variables.push_back({variable.name, storage});
  const auto address = static_cast<int64_t>(reinterpret_cast<uint64_t>(storage));
  at->second = address;
  toInitialise.emplace_back(storage, &variable);
  if (toInitialise.size() > 1) // the loop below, which is running, initialises it
    return address;
  for (size_t i = 0; i < toInitialise.size(); ++i) {
    const auto [place, next] = toInitialise[i];
    initialise(place, *next);
  }
  toInitialise.clear();
  return address;
}

// --- A program -----------------------------------------------------------------------------------------------------

static void layOutParameters(Program &program, const ptx::Function &kernel) {
  for (const int index : kernel.parameters) {
    const ptx::Variable &variable = kernel.variables[static_cast<size_t>(index)];
    const int64_t offset = roundUp(program.parameterBytes, variable.align), end = offset + variable.bytes();
    if (end > maxParameterBytes)
      throw Error(fmt::format("PTX line {}: expected at most {} bytes of parameters, but got {} with '{}'",
                              variable.line, maxParameterBytes, end, variable.name));
    program.parameters.push_back({std::string(variable.name), static_cast<uint32_t>(offset),
                                  static_cast<uint32_t>(variable.bytes()), variable.type});
    program.parameterBytes = static_cast<uint32_t>(end);
  }
}

/// A function's code. If a register may be read before it is written, it is decoded again with checking steps.
static Code decodeFunction(const ptx::Module &module, int function, Program &program, Storage &storage) {
  const ptx::Function &text = module.functions[static_cast<size_t>(function)];
  CodeBuilder builder(module, function, program, storage);
  Code code = builder.build();
  if (const std::vector<ptx::Use> unsure = ptx::unsureReads(text, builder.uses); !unsure.empty())
    code = CodeBuilder(module, function, program, storage).build(unsure);
  if (text.hasBody)
    markCopies(text, builder.uses, code);
  return code;
}

std::shared_ptr<const Program> buildProgram(std::shared_ptr<const ptx::Module> module, const std::string &name,
                                            Memory &memory, const std::string &names, int64_t sharedBytesOfGpu) {
  const int64_t sharedBytesOfTarget = checkTarget(*module);
  const int entry = module->find(name);
  if (entry < 0 || !module->functions[static_cast<size_t>(entry)].isEntry) {
    std::vector<std::string> names;
    for (const ptx::Function &function : module->functions)
      if (function.isEntry)
        names.emplace_back(function.name);
    throw Error(unknownName("kernel", name, names));
  }
  auto program = std::make_shared<Program>();
  program->name = name;
  program->module = module;
  const ptx::Function &kernel = module->functions[static_cast<size_t>(entry)];
  layOutParameters(*program, kernel);
  program->block = kernel.block;
  program->blockIsFixed = kernel.blockIsFixed;
  if (*std::max_element(kernel.cluster.begin(), kernel.cluster.end()) > 1)
    throw Error(
        fmt::format("PTX line {}: clusters of more than one block are not supported by the simulator, but got {}x{}x{}",
                    kernel.place.line, kernel.cluster[0], kernel.cluster[1], kernel.cluster[2]));
  program->maxRegisters = kernel.maxRegisters;
  program->maxShared = sharedBytesOfGpu ? sharedBytesOfGpu : sharedBytesOfTarget;
  const std::vector<int> reached = Reached(*module).from(entry);
  program->codeOfFunction.assign(module->functions.size(), -1);
  for (size_t i = 0; i < reached.size(); ++i)
    program->codeOfFunction[static_cast<size_t>(reached[i])] = static_cast<int>(i);
  Storage storage(*module, memory, reached);
  program->sharedBytes = storage.sharedBytes();
  program->staticShared = storage.staticSharedBytes();
  program->sharedNames.read(*module->text, name, "PTX line");
  program->sharedNames.read(names, name, "line");
  for (const int function : reached)
    program->codes.push_back(decodeFunction(*module, function, *program, storage));
  program->variables = storage.allocated();
  return program;
}

} // namespace kiln::simulator
