// Frame layout: constants first, so that entering a function is one copy; then special registers, then registers.

#include "runtime/simulator/CodeBuilder.h"

#include "dialect/dsl/Types.h"
#include "runtime/simulator/Access.h"
#include "runtime/simulator/Printf.h"
#include "runtime/simulator/Warpgroup.h"
#include "runtime/simulator/ptx/Module.h"

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

/// Whether it is an instruction that the simulator lacks, although others have its opcode: a product of sparse
/// matrices, or st.bulk.
static bool isOfAnother(const ptx::Function &function, const ptx::Instruction &instruction) {
  return function.has(instruction, "sp") || (instruction.opcode == "st" && function.has(instruction, "bulk"));
}

void CodeBuilder::decode(const ptx::Instruction &instruction) {
  const auto found = instructions().find(instruction.opcode);
  Decoder decoder(*this, instruction);
  if (found == instructions().end() || isOfAnother(function, instruction))
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
  const auto has = [&](std::string_view name) { return function.has(instruction, name); };
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
  const bool isAligned =
      (instruction.opcode == "bar" && code.steps[first].members == Step::none) || function.has(instruction, "aligned");
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
    const int next = i + 1 < code.steps.size() ? code.steps[i + 1].plain : 0;
    step.plain = static_cast<uint16_t>(isPlain ? 1 + std::min(next, 255) : 0);
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

void CodeBuilder::addStep(const Step &step, const ptx::Place &place) {
  code.steps.push_back(step);
  code.places.push_back(place);
}

/// Adds a step about the register of a use, for the lanes that execute the instruction. A guard is read in every lane.
void CodeBuilder::addStepFor(const ptx::Use &use, Step step) {
  const ptx::Instruction &instruction = function.instructions[static_cast<size_t>(use.instruction)];
  if (instruction.guard >= 0 && instruction.guard != use.reg) {
    step.guard = registerSlot(instruction.guard);
    step.guardNegated = instruction.guardNegated;
  }
  addStep(step, instruction.place);
}

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
  addStep(step, function.place);
}

/// Checks that the lanes that are about to read a register have written it.
void CodeBuilder::emitLooking(const ptx::Use &use) {
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
  addStepFor(use, step);
}

/// Records the lanes that write the watched registers among `uses`, from `firstUse` on.
void CodeBuilder::emitNoting(size_t firstUse) {
  for (size_t i = firstUse; i < uses.size(); ++i) {
    const auto watched = writtenSlots.find(uses[i].reg);
    if (!uses[i].isWrite || watched == writtenSlots.end())
      continue;
    Step step{.run = [](Warp &warp, const Step &step) { warp.predicate(step.slots[0]) |= warp.exec; }};
    step.slots[0] = watched->second;
    addStepFor(uses[i], step);
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
      addStep({.run = [](Warp &warp, const Step &step) { warp.arriveAtJoin(step); }}, function.instructions[i].place);
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
  addStep({.run = [](Warp &warp, const Step &) { warp.returnLanes(); }},
          function.instructions.empty() ? function.place : function.instructions.back().place);
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

// --- Loads that are copies ------------------------------------------------------------------------------------------
//
// Finds loads whose bytes are only stored again, so that uninitialised ones are no error. They copy a structure with
// its padding, or a word in which a bit field is replaced:
//
//     ld.u32 %r1, [%rd3];  and.b32 %r2, %r1, -256;  or.b32 %r3, %r2, %r5;  st.u32 [%rd3], %r3;

using ptx::Operand;

namespace {
class Copies {
public:
  Copies(const ptx::Function &function, const std::vector<ptx::Use> &uses)
      : function(function), readsOf(function.registers.size()), writesOf(function.instructions.size()) {
    for (const ptx::Use &use : uses)
      (use.isWrite ? writesOf[static_cast<size_t>(use.instruction)] : readsOf[static_cast<size_t>(use.reg)])
          .push_back(use.isWrite ? use.reg : use.instruction);
  }

  bool isCopy(int number) const {
    const ptx::Instruction &load = instruction(number);
    const std::vector<int> &results = writesOf[static_cast<size_t>(number)];
    const auto all = [&](const auto &holds) { return std::all_of(results.begin(), results.end(), holds); };
    return load.opcode == "ld" && (all([&](int reg) { return isOnlyStored(reg); }) ||
                                   all([&](int reg) { return isPutBack(reg, function.operandsOf(load)[1], most); }));
  }

private:
  /// Most instructions between such a load and its store.
  static constexpr int most = 8;

  const ptx::Instruction &instruction(int number) const { return function.instructions[static_cast<size_t>(number)]; }

  /// Whether a store stores this register.
  bool isStored(const ptx::Instruction &store, int reg) const {
    if (store.opcode != "st" || store.guard == reg)
      return false;
    const Operand &to = function.operandsOf(store)[0];
    return !(to.kind == Operand::Kind::address && to.base == Operand::Kind::reg && to.index == reg);
  }

  bool isOnlyStored(int reg) const {
    const std::vector<int> &reads = readsOf[static_cast<size_t>(reg)];
    return !reads.empty() &&
           std::all_of(reads.begin(), reads.end(), [&](int read) { return isStored(instruction(read), reg); });
  }

  /// Whether a register's only use is to be stored at `address`, possibly combined with other bits.
  bool isPutBack(int reg, const Operand &address, int effort) const {
    const std::vector<int> &reads = readsOf[static_cast<size_t>(reg)];
    return effort > 0 && !reads.empty() && std::all_of(reads.begin(), reads.end(), [&](int read) {
             const ptx::Instruction &reader = instruction(read);
             if (reader.guard == reg)
               return false;
             if (isStored(reader, reg)) {
               const Operand &to = function.operandsOf(reader)[0];
               return to.kind == Operand::Kind::address && address.kind == Operand::Kind::address &&
                      to.base == address.base && to.index == address.index && to.isLocal == address.isLocal &&
                      to.bits == address.bits;
             }
             const std::vector<int> &results = writesOf[static_cast<size_t>(read)];
             return (reader.opcode == "and" || reader.opcode == "or" || reader.opcode == "bfi") &&
                    results.size() == 1 && isPutBack(results[0], address, effort - 1);
           });
  }

  const ptx::Function &function;
  std::vector<std::vector<int>> readsOf;  // for each register: the instructions that read it
  std::vector<std::vector<int>> writesOf; // for each instruction: the registers that it writes
};
} // namespace

void markCopies(const ptx::Function &function, const std::vector<ptx::Use> &uses, Code &code) {
  const Copies copies(function, uses);
  for (size_t i = 0; i < code.steps.size(); ++i)
    if (const int number = code.instructions[i]; number >= 0 && copies.isCopy(number)) {
      AccessShape shape = AccessShape::unpack(code.steps[i].target);
      shape.isCopy = true;
      code.steps[i].target = shape.pack();
    }
}

} // namespace kiln::simulator
