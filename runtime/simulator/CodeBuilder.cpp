// Frame layout: constants first, so that entering a function is one copy; then special registers, then registers.

#include "runtime/simulator/CodeBuilder.h"

#include "dialect/dsl/Types.h"
#include "runtime/simulator/Access.h"
#include "runtime/simulator/Calls.h"
#include "runtime/simulator/Printf.h"
#include "runtime/simulator/Reach.h"
#include "runtime/simulator/Targets.h"
#include "runtime/simulator/Wgmma.h"
#include "runtime/simulator/ptx/Flow.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;

/// Instructions whose handlers access only the registers of their lanes.
static const InstructionTable &onLanes() {
  static const InstructionTable table = [] {
    InstructionTable all;
    addArithmetic(all);
    addFloatFunctions(all);
    addLogic(all);
    addCompare(all);
    addConvert(all);
    addMoves(all);
    addVideo(all);
    return all;
  }();
  return table;
}

static const InstructionTable &instructions() {
  static const InstructionTable table = [] {
    InstructionTable all = onLanes();
    addControl(all);
    addCalls(all);
    addAccess(all);
    addAtomics(all);
    addExchange(all);
    addBarriers(all);
    addMatrix(all);
    addMma(all);
    addAsyncCopies(all);
    addWmma(all);
    addMbarriers(all);
    addTensorMaps(all);
    addWgmma(all);
    addClusters(all);
    return all;
  }();
  return table;
}

std::vector<std::string_view> knownOpcodes() {
  std::vector<std::string_view> names;
  for (const auto &[name, decode] : instructions())
    names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

// --- Storage -------------------------------------------------------------------------------------------------------

static int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

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
    std::string names;
    for (const ptx::Function &function : module->functions)
      if (function.isEntry)
        names += (names.empty() ? "" : ", ") + std::string(function.name);
    throw Error(fmt::format("expected a kernel out of {}, but got '{}'", names.empty() ? "none" : names, name));
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
  const std::vector<int> reached = reachableFrom(*module, entry);
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

// --- A function ----------------------------------------------------------------------------------------------------

LocalLayout layOutLocals(const ptx::Function &function) {
  LocalLayout layout;
  layout.offsets.assign(function.variables.size(), -1);
  for (size_t i = 0; i < function.variables.size(); ++i) {
    const ptx::Variable &variable = function.variables[i];
    const bool ofKernel = function.isEntry && std::find(function.parameters.begin(), function.parameters.end(),
                                                        static_cast<int>(i)) != function.parameters.end();
    if (ofKernel || (variable.space != Space::local && variable.space != Space::param))
      continue;
    const int64_t offset = roundUp(layout.bytes, variable.align);
    if (offset + variable.bytes() > maxLocalBytes)
      throw Error(fmt::format("PTX line {}: expected at most {} bytes of local memory a thread, but got {} with '{}'",
                              variable.line, maxLocalBytes, offset + variable.bytes(), variable.name));
    layout.offsets[i] = offset;
    layout.bytes = static_cast<uint32_t>(offset + variable.bytes());
  }
  layout.bytes = static_cast<uint32_t>(roundUp(layout.bytes, 16));
  return layout;
}

CodeBuilder::CodeBuilder(const ptx::Module &module, int functionIndex, Program &program, Storage &storage)
    : module(module), function(module.functions[static_cast<size_t>(functionIndex)]), functionIndex(functionIndex),
      program(program), storage(storage), registers(function.registers.size(), Step::none),
      locals(layOutLocals(function)) {
  code.localBytes = locals.bytes;
}

/// Allocates `bytes` per lane at the frame's end.
static uint32_t extend(Code &code, int bytes) {
  const uint32_t slot = code.frameBytes;
  code.frameBytes += bytes ? static_cast<uint32_t>(bytes) * lanesOfWarp : slotBytes;
  return slot;
}

uint32_t CodeBuilder::registerSlot(int index) {
  uint32_t &slot = registers[static_cast<size_t>(index)];
  if (slot == Step::none)
    slot = extend(code, laneBytes(function.registers[static_cast<size_t>(index)].type));
  return slot;
}

uint32_t CodeBuilder::readSlot(int index) {
  uses.push_back({current, index, false});
  return registerSlot(index);
}

uint32_t CodeBuilder::writeSlot(int index) {
  uses.push_back({current, index, true});
  return registerSlot(index);
}

uint32_t CodeBuilder::constantSlot(uint64_t bits, int bytes) {
  const auto [at, isNew] = constants.try_emplace({bits, bytes}, 0);
  if (isNew)
    at->second = extend(code, bytes);
  return at->second;
}

uint32_t CodeBuilder::specialSlot(int index, bool wide) {
  const auto [at, isNew] = specials.try_emplace({index, wide}, 0);
  if (isNew) {
    at->second = extend(code, wide ? 8 : 4);
    code.specials.push_back({index, at->second, wide});
  }
  return at->second;
}

uint32_t CodeBuilder::frameAddressSlot(uint64_t offset, bool wide) {
  const auto [at, isNew] = frameAddresses.try_emplace({offset, wide}, 0);
  if (isNew) {
    at->second = extend(code, wide ? 8 : 4);
    code.frameAddresses.push_back({offset, at->second, wide});
  }
  return at->second;
}

uint32_t CodeBuilder::scratchSlot(int bytes) { return extend(code, bytes); }

uint32_t CodeBuilder::carrySlot() {
  if (carry == Step::none)
    carry = extend(code, 0);
  return carry;
}

uint32_t CodeBuilder::localOffset(int variable) const {
  const int64_t offset = locals.offsets[static_cast<size_t>(variable)];
  return offset < 0 ? Step::none : static_cast<uint32_t>(offset);
}

uint32_t CodeBuilder::stackSlot() {
  if (stack == Step::none) {
    stack = extend(code, 8);
    code.frameAddresses.push_back({locals.bytes, stack, true});
  }
  return stack;
}

bool CodeBuilder::takesFromStack() const {
  return std::any_of(function.instructions.begin(), function.instructions.end(),
                     [](const ptx::Instruction &instruction) { return instruction.opcode == "alloca"; });
}

int CodeBuilder::codeOf(int wanted) const { return program.codeOfFunction[static_cast<size_t>(wanted)]; }

/// Whether an opcode with these modifiers is an instruction that the simulator lacks: a product of sparse matrices, or
/// st.bulk.
static bool isOfAnother(std::string_view opcode, std::span<const std::string_view> modifiers) {
  return std::ranges::count(modifiers, "sp") || (opcode == "st" && std::ranges::count(modifiers, "bulk"));
}

void CodeBuilder::decode(const ptx::Instruction &instruction) {
  const auto found = instructions().find(instruction.opcode);
  Decoder decoder(*this, instruction);
  if (found == instructions().end() || isOfAnother(instruction.opcode, function.modifiersOf(instruction)))
    decoder.unsupported();
  found->second(decoder);
  decoder.finish();
  forms.expect(decoder);
}

/// Marks the steps, other than wgmma, that access a register of a wgmma, so that they are checked.
void CodeBuilder::watchRegisters() {
  const auto isWgmma = [&](int instruction) {
    return function.instructions[static_cast<size_t>(instruction)].opcode == "wgmma";
  };
  std::set<int> ofWgmma;
  for (const ptx::Use &use : uses)
    if (isWgmma(use.instruction))
      ofWgmma.insert(use.reg);
  if (ofWgmma.empty())
    return;
  std::vector<std::vector<Code::Touch>> touches(function.instructions.size());
  for (const ptx::Use &use : uses)
    if (!isWgmma(use.instruction) && ofWgmma.contains(use.reg))
      touches[static_cast<size_t>(use.instruction)].push_back({registerSlot(use.reg), use.isWrite});
  code.watched.resize(code.steps.size());
  for (size_t i = 0; i < code.steps.size(); ++i) {
    const int instruction = code.instructions[i];
    if (instruction < 0 || touches[static_cast<size_t>(instruction)].empty())
      continue;
    code.watched[i] = {std::exchange(code.steps[i].run, runWatched), touches[static_cast<size_t>(instruction)]};
  }
}

/// Whether an instruction may change state that paths in loops see, other than by loads, stores and atomics. Barriers
/// continue only paths that wait for them.
static bool mayChange(const ptx::Function &function, const ptx::Instruction &instruction) {
  static const std::set<std::string_view> quiet = {
      "activemask", "atom",     "bar",  "barrier", "bra",    "brx",      "call",      "elect",     "fence",
      "ld",         "ldmatrix", "ldu",  "match",   "membar", "mma",      "movmatrix", "nanosleep", "red",
      "redux",      "ret",      "shfl", "st",      "vote",   "prefetch", "wmma"};
  const auto modifiers = function.modifiersOf(instruction);
  const auto has = [&](std::string_view name) {
    return std::find(modifiers.begin(), modifiers.end(), name) != modifiers.end();
  };
  if (instruction.opcode == "mbarrier")
    return !has("test_wait") && !has("try_wait") && !has("pending_count");
  return has("async") || (!quiet.contains(instruction.opcode) && !onLanes().contains(instruction.opcode));
}

/// Records properties of an instruction's steps, from `first` on, for the scheduler.
void CodeBuilder::noteInstruction(const ptx::Instruction &instruction, size_t first) {
  if (code.steps.size() == first)
    return;
  code.instructions.back() = current; // its last step represents it
  code.steps.back().counts = true;
  const auto modifiers = function.modifiersOf(instruction);
  const bool isAligned = (instruction.opcode == "bar" && code.steps[first].members == Step::none) ||
                         std::find(modifiers.begin(), modifiers.end(), "aligned") != modifiers.end();
  if (isAligned)
    code.steps[first].members = Step::everyLane;
  if (mayChange(function, instruction))
    code.steps.back().changes = true;
}

/// Marks runs of plain steps, which execute without checks in between.
void CodeBuilder::markPlain() {
  for (size_t i = code.steps.size(); i-- > 0;) {
    Step &step = code.steps[i];
    const int instruction = code.instructions[i];
    const bool isPlain = instruction >= 0 && step.guard == Step::none && !step.isBranch &&
                         onLanes().contains(function.instructions[static_cast<size_t>(instruction)].opcode);
    step.plain =
        isPlain
            ? static_cast<uint16_t>(1 + (i + 1 < code.steps.size() ? std::min<int>(code.steps[i + 1].plain, 255) : 0))
            : 0;
  }
}

/// The constants' values, copied into the frame on entry.
void CodeBuilder::placeImage() {
  uint32_t end = 0;
  for (const auto &[key, slot] : constants)
    end = std::max(end, slot + std::max(static_cast<uint32_t>(key.second) * lanesOfWarp, 8u));
  code.image.assign(end, 0);
  for (const auto &[key, slot] : constants)
    if (key.second == 0) // a predicate: one word
      std::memcpy(code.image.data() + slot, &key.first, sizeof(Mask));
    else
      for (int lane = 0; lane < lanesOfWarp; ++lane)
        std::memcpy(code.image.data() + slot + static_cast<size_t>(lane) * key.second, &key.first,
                    static_cast<size_t>(key.second));
}

// --- Registers that may not have been written ----------------------------------------------------------------------

/// At the beginning of the function, no register is written.
void CodeBuilder::emitClearing() {
  if (writtenSlots.empty())
    return;
  Step step{.run = [](Warp &warp, const Step &step) {
    for (uint32_t i = 0; i < step.count; ++i)
      warp.predicate(warp.list(step)[i]) = 0;
  }};
  step.list = static_cast<uint32_t>(code.lists.size());
  step.count = static_cast<uint32_t>(writtenSlots.size());
  for (const auto &[reg, slot] : writtenSlots)
    code.lists.push_back(slot);
  code.steps.push_back(step);
  code.places.push_back(function.place);
}

/// Checks that the lanes that are about to read a register have written it.
void CodeBuilder::emitLooking(const ptx::Use &use) {
  const ptx::Instruction &instruction = function.instructions[static_cast<size_t>(use.instruction)];
  Step step{.run = [](Warp &warp, const Step &step) {
    Mask &written = warp.predicate(step.slots[0]);
    if (const Mask missing = warp.exec & ~written) {
      const auto &registers = warp.program.module->functions[static_cast<size_t>(step.target)].registers;
      warp.report(Check::uninitialised, step, std::countr_zero(missing),
                  fmt::format("reads register '{}', to which nothing was written", registers[step.detail].name));
      written |= missing; // report it once
    }
  }};
  step.slots[0] = writtenSlots.at(use.reg);
  step.detail = static_cast<uint64_t>(use.reg);
  step.target = functionIndex;
  // The guard itself is read in every lane.
  if (instruction.guard >= 0 && instruction.guard != use.reg) {
    step.guard = registerSlot(instruction.guard);
    step.guardNegated = instruction.guardNegated;
  }
  code.steps.push_back(step);
  code.places.push_back(instruction.place);
}

/// Records the lanes that write the watched registers among `uses`, from `firstUse` on.
void CodeBuilder::emitNoting(size_t firstUse) {
  for (size_t i = firstUse; i < uses.size(); ++i) {
    const auto watched = writtenSlots.find(uses[i].reg);
    if (!uses[i].isWrite || watched == writtenSlots.end())
      continue;
    const ptx::Instruction &instruction = function.instructions[static_cast<size_t>(current)];
    Step step{.run = [](Warp &warp, const Step &step) { warp.predicate(step.slots[0]) |= warp.exec; }};
    step.slots[0] = watched->second;
    if (instruction.guard >= 0 && instruction.guard != uses[i].reg) {
      step.guard = registerSlot(instruction.guard);
      step.guardNegated = instruction.guardNegated;
    }
    code.steps.push_back(step);
    code.places.push_back(instruction.place);
  }
}

/// A function without a body, such as __assertfail. Only vprintf is implemented; a call of another one is a trap.
void CodeBuilder::buildSystemFunction() {
  if (function.name == "vprintf" && function.results.size() == 1 && function.parameters.size() == 2) {
    Step step{.run = printFormatted};
    const int variables[] = {function.results[0], function.parameters[0], function.parameters[1]};
    std::transform(std::begin(variables), std::end(variables), step.slots.begin(),
                   [&](int variable) { return localOffset(variable); });
    code.steps.push_back(step);
    code.steps.push_back({.run = [](Warp &warp, const Step &) { warp.returnLanes(); }});
  } else {
    code.steps.push_back({.run = [](Warp &warp, const Step &step) {
      warp.report(
          Check::trap, step, std::countr_zero(warp.exec),
          fmt::format("calls '{}', which has no body", warp.program.codes[static_cast<size_t>(warp.path.code)].name));
      warp.exitLanes();
    }});
  }
  code.places.assign(code.steps.size(), function.place);
}

Code CodeBuilder::build(const std::vector<ptx::Use> &unsure) {
  code.name = function.name;
  code.signature = signatureOf(function);
  if (!function.hasBody) {
    buildSystemFunction();
    return std::move(code);
  }
  const std::vector<int> meetings = ptx::meetingPoints(function);
  std::vector<bool> meetsBefore(function.instructions.size() + 1, false);
  for (const int meeting : meetings)
    if (meeting >= 0)
      meetsBefore[static_cast<size_t>(meeting)] = true;
  for (const ptx::Use &use : unsure)
    if (const auto [at, isNew] = writtenSlots.try_emplace(use.reg, 0); isNew)
      at->second = extend(code, 0);
  emitClearing();
  auto looked = unsure.begin();
  std::vector<int> stepOf(function.instructions.size() + 1);
  std::vector<int> instructionOf;
  for (size_t i = 0; i <= function.instructions.size(); ++i) {
    stepOf[i] = static_cast<int>(code.steps.size());
    if (meetsBefore[i]) {
      code.steps.push_back({.run = [](Warp &warp, const Step &step) { warp.arriveAtJoin(step); }});
      code.places.push_back(function.instructions[i].place);
    }
    if (i < function.instructions.size()) {
      current = static_cast<int>(i);
      for (; looked != unsure.end() && looked->instruction == current; ++looked)
        emitLooking(*looked);
      const size_t firstUse = uses.size();
      const size_t firstStep = code.steps.size();
      decode(function.instructions[i]);
      code.instructions.resize(code.steps.size(), -1);
      noteInstruction(function.instructions[i], firstStep);
      if (!writtenSlots.empty())
        emitNoting(firstUse);
      std::stable_sort(uses.begin() + static_cast<std::ptrdiff_t>(firstUse), uses.end(),
                       [](const ptx::Use &a, const ptx::Use &b) { return a.isWrite < b.isWrite; });
    }
    instructionOf.resize(code.steps.size(), static_cast<int>(i));
  }
  code.steps.push_back({.run = [](Warp &warp, const Step &) { warp.returnLanes(); }});
  code.places.push_back(function.instructions.empty() ? function.place : function.instructions.back().place);
  code.instructions.resize(code.steps.size(), -1);
  const auto stepAt = [&](int label) {
    return stepOf[static_cast<size_t>(function.labels[static_cast<size_t>(label)])];
  };
  for (size_t i = 0; i < instructionOf.size(); ++i) {
    Step &step = code.steps[i];
    const int meeting =
        instructionOf[i] < static_cast<int>(meetings.size()) ? meetings[static_cast<size_t>(instructionOf[i])] : -1;
    if (step.isBranch) {
      step.join = meeting < 0 ? -1 : stepOf[static_cast<size_t>(meeting)];
      if (step.target >= 0)
        step.target = stepAt(step.target);
    }
  }
  for (const std::vector<int> &labels : function.branchTargets) {
    code.targets.emplace_back();
    for (const int label : labels)
      code.targets.back().push_back(stepAt(label));
  }
  watchRegisters();
  markPlain();
  placeImage();
  return std::move(code);
}

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

} // namespace kiln::simulator
