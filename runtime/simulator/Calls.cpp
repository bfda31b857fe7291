// Calls by name and by address, and the stack of alloca.
//
// A function's part of a lane's local memory begins with its results and parameters, in this order. So their addresses
// depend only on the function's form. Its variables and then its allocas follow. A callee's part begins after the
// largest end of the lanes' stacks.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Lanes.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Type;

namespace {
/// The form of a function: its results and parameters, and their offsets in its local memory.
struct Form {
  struct Part {
    uint32_t offset, bytes;
  };
  std::vector<Part> results, parameters;
  int64_t bytes = 0;

  void add(std::vector<Part> &list, const ptx::Variable &variable) {
    const int64_t offset = roundUp(bytes, variable.align);
    bytes = offset + variable.bytes();
    list.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(variable.bytes())});
  }
  std::vector<uint32_t> signature() const {
    std::vector<uint32_t> all = {static_cast<uint32_t>(results.size())};
    for (const std::vector<Part> *list : {&results, &parameters})
      for (const Part &part : *list)
        all.push_back(part.bytes);
    return all;
  }
};
} // namespace

static Form callForm(const ptx::Function &function) {
  Form form;
  if (function.isEntry || function.registerParameters)
    return form;
  for (const int result : function.results)
    form.add(form.results, function.variables[static_cast<size_t>(result)]);
  for (const int parameter : function.parameters)
    form.add(form.parameters, function.variables[static_cast<size_t>(parameter)]);
  return form;
}

static Form callForm(const ptx::Prototype &prototype) {
  Form form;
  for (const ptx::Variable &result : prototype.results)
    form.add(form.results, result);
  for (const ptx::Variable &parameter : prototype.parameters)
    form.add(form.parameters, parameter);
  return form;
}

std::vector<uint32_t> signatureOf(const ptx::Function &function) { return callForm(function).signature(); }

// --- Running -------------------------------------------------------------------------------------------------------

/// The offset of the callee's local memory from the caller's: by lane in slot 0, or Step::detail for all.
static uint32_t distanceOf(Warp &warp, const Step &step) {
  return static_cast<uint32_t>(
      step.slots[0] == Step::none ? step.detail : warp.reg<uint64_t>(step.slots[0])[std::countr_zero(warp.exec)]);
}

/// Slot 0: the largest stack end of the executing lanes (slot 1).
static void measureStack(Warp &warp, const Step &step) {
  const auto *const stack = warp.reg<uint64_t>(step.slots[1]);
  uint64_t most = 0;
  forEachLane(warp, [&](int lane) { most = std::max(most, stack[lane]); });
  setLanes<uint64_t>(warp, step.slots[0], (most - warp.path.local + 15) / 16 * 16);
}

/// Copies local bytes between a caller's memory and its callee's. The list holds the offsets in both, and the sizes.
template <bool Back> static void copyLocals(Warp &warp, const Step &step) {
  const uint32_t *list = warp.list(step);
  const uint32_t distance = distanceOf(warp, step);
  for (uint32_t i = 0; i + 2 < step.count; i += 3)
    forEachLane(warp, [&](int lane) { // the bytes, and whether they have values
      for (char *const base : {warp.localMemoryOf(lane), warp.localWritten(lane)}) {
        char *const ofCaller = base + warp.path.local + list[i];
        char *const ofCallee = base + warp.path.local + distance + list[i + 1];
        std::memcpy(Back ? ofCaller : ofCallee, Back ? ofCallee : ofCaller, list[i + 2]);
      }
    });
}

static void callByName(Warp &warp, const Step &step) {
  std::array<int, lanesOfWarp> targets;
  targets.fill(step.target);
  warp.call(targets, distanceOf(warp, step));
}

/// Why a lane cannot call an address; empty if it can.
static std::string faultOfCall(const Program &program, const Code::CallSite &site, uint64_t address) {
  const int target = program.codeAt(address);
  if (target < 0)
    return fmt::format("calls {:#x}, where no function lies", address);
  const Code &code = program.codes[static_cast<size_t>(target)];
  if (code.signature != site.signature)
    return fmt::format("calls '{}' with results and parameters of other sizes than it has", code.name);
  if (!site.allowed.empty() && std::find(site.allowed.begin(), site.allowed.end(), target) == site.allowed.end())
    return fmt::format("calls '{}', which is not among the targets that the call names", code.name);
  return "";
}

/// Slot 1: the functions' addresses.
static void callByAddress(Warp &warp, const Step &step) {
  const Code::CallSite &site = warp.callSite(step);
  const auto *const addresses = warp.reg<uint64_t>(step.slots[1]);
  std::array<int, lanesOfWarp> targets{};
  Mask wrong = 0;
  forEachLane(warp, [&](int lane) {
    targets[static_cast<size_t>(lane)] = warp.program.codeAt(addresses[lane]);
    if (const std::string fault = faultOfCall(warp.program, site, addresses[lane]); !fault.empty()) {
      warp.report(Check::trap, step, lane, fault);
      wrong |= Mask{1} << lane;
    }
  });
  const Mask right = warp.exec & ~wrong;
  const uint32_t distance = distanceOf(warp, step);
  if (wrong) {
    warp.exec = wrong;
    warp.exitLanes();
    warp.exec = right;
  }
  if (right)
    warp.call(targets, distance);
}

// --- Decoding ------------------------------------------------------------------------------------------------------

namespace {
/// The parts of a call instruction.
struct CallParts {
  std::span<const Operand> results, arguments;
  const Operand *target = nullptr, *form = nullptr; // form: the prototype of an indirect call
};
} // namespace

static CallParts parseCall(Decoder &d) {
  CallParts parts;
  size_t at = 0;
  if (d.operand(at).kind == Operand::Kind::list)
    parts.results = d.elements(d.operand(at++));
  parts.target = &d.operand(at++);
  if (at < d.count() && d.operand(at).kind == Operand::Kind::list)
    parts.arguments = d.elements(d.operand(at++));
  if (at < d.count())
    parts.form = &d.operand(at++);
  d.expectCount(at, at);
  return parts;
}

/// The copies that pass the caller's `actual` variables as the parts of a callee's form.
static std::vector<uint32_t> copiesFor(Decoder &d, std::span<const Operand> actual,
                                       const std::vector<Form::Part> &formal, std::string_view callee) {
  if (actual.size() != formal.size())
    d.wrong(fmt::format("{} arguments for {}, but got {},", formal.size(), callee, actual.size()));
  std::vector<uint32_t> list;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i].kind != Operand::Kind::variable || !d.isInFrame(actual[i]))
      d.unsupported("arguments that are no .param variables of the function");
    const ptx::Variable &from = d.builder.function.variables[static_cast<size_t>(actual[i].index)];
    list.insert(list.end(), {d.builder.localOffset(actual[i].index), formal[i].offset,
                             std::min(static_cast<uint32_t>(from.bytes()), formal[i].bytes)});
  }
  return list;
}

static Form formOfFunction(Decoder &d, int index) {
  const ptx::Function &callee = d.builder.module.functions[static_cast<size_t>(index)];
  if (callee.isEntry)
    d.unsupported("a call of a kernel");
  if (callee.registerParameters)
    d.unsupported("parameters in registers");
  return callForm(callee);
}

/// The possible targets of an indirect call: those of a list, or of an array.
static std::vector<int> namedTargets(Decoder &d, const Operand &form) {
  if (form.kind == Operand::Kind::targets)
    return d.builder.function.callTargets[static_cast<size_t>(form.index)];
  std::vector<int> functions;
  if (form.kind == Operand::Kind::variable && !form.isLocal)
    for (const ptx::Initialiser &value : d.builder.module.variables[static_cast<size_t>(form.index)].values)
      if (value.function >= 0)
        functions.push_back(value.function);
  if (functions.empty())
    d.wrong("a prototype, a list of call targets or an array of functions");
  return functions;
}

/// Decodes the prototype of an indirect call.
static Form decodeCallSite(Decoder &d, const CallParts &parts) {
  if (!parts.form)
    d.wrong("a prototype or a list of targets of an indirect call");
  Code::CallSite site;
  Form form;
  if (parts.form->kind == Operand::Kind::prototype) {
    const ptx::Prototype &prototype = d.builder.function.prototypes[static_cast<size_t>(parts.form->index)];
    if (prototype.registerParameters)
      d.unsupported("parameters in registers");
    form = callForm(prototype);
  } else {
    const std::vector<int> functions = namedTargets(d, *parts.form);
    form = formOfFunction(d, functions.front());
    for (const int function : functions)
      site.allowed.push_back(d.builder.codeOf(function));
  }
  if (form.bytes > maxLocalBytes)
    d.wrong(fmt::format("at most {} bytes of parameters, but got {},", maxLocalBytes, form.bytes));
  site.signature = form.signature();
  d.builder.code.callSites.push_back(site);
  return form;
}

static void decodeCall(Decoder &d) {
  d.take("uni");
  const CallParts parts = parseCall(d);
  const bool isNamed = parts.target->kind == Operand::Kind::function;
  if (isNamed && parts.form)
    d.wrong("no list of targets where the function is named");
  const Form form = isNamed ? formOfFunction(d, parts.target->index) : decodeCallSite(d, parts);
  const std::string callee =
      isNamed ? fmt::format("function '{}'", d.builder.module.functions[static_cast<size_t>(parts.target->index)].name)
              : "the functions called";
  const std::vector<uint32_t> in = copiesFor(d, parts.arguments, form.parameters, callee);
  const std::vector<uint32_t> out = copiesFor(d, parts.results, form.results, callee);
  uint32_t distance = Step::none;
  if (d.builder.takesFromStack()) {
    distance = d.builder.scratchSlot(8);
    d.emit(measureStack, {distance, d.builder.stackSlot()});
  }
  const uint64_t locals = d.builder.code.localBytes;
  // The callee's memory must exist before its arguments are copied.
  d.emit(
       [](Warp &warp, const Step &step) {
         warp.makeRoomForCall(step, distanceOf(warp, step) + static_cast<uint32_t>(step.target));
       },
       {distance}, locals)
      .target = static_cast<int>(form.bytes);
  d.giveList(d.emit(copyLocals<false>, {distance}, locals), in);
  if (isNamed) {
    d.emit(callByName, {distance}, locals).target = d.builder.codeOf(parts.target->index);
  } else {
    const uint32_t address = d.source(*parts.target, Type::u64);
    d.emit(callByAddress, {distance, address}, locals).target = static_cast<int>(d.builder.code.callSites.size()) - 1;
  }
  d.giveList(d.emit(copyLocals<true>, {distance}, locals), out);
}

// --- The stack -----------------------------------------------------------------------------------------------------

/// Slots: the allocated address, the number of bytes, the stack's end. `detail`: the alignment.
template <class Word> static void allocate(Warp &warp, const Step &step) {
  auto *const result = warp.reg<Word>(step.slots[0]);
  const auto *const sizes = warp.reg<Word>(step.slots[1]);
  auto *const stack = warp.reg<uint64_t>(step.slots[2]);
  std::array<uint64_t, lanesOfWarp> begin{}, bytes{};
  uint64_t most = 0;
  Mask refused = 0;
  forEachLane(warp, [&](int number) {
    const auto lane = static_cast<size_t>(number);
    begin[lane] = (stack[lane] + step.detail - 1) / step.detail * step.detail;
    bytes[lane] = sizes[lane];
    if (begin[lane] > maxLocalBytes || bytes[lane] > maxLocalBytes - begin[lane])
      refused |= Mask{1} << lane;
    else
      most = std::max(most, begin[lane] + bytes[lane]);
  });
  if (refused) {
    const int lane = std::countr_zero(refused);
    warp.report(Check::bounds, step, lane,
                fmt::format("takes {} bytes of local memory in addition to {}, but a thread has {}",
                            bytes[static_cast<size_t>(lane)], stack[lane], maxLocalBytes));
    const Mask rest = warp.exec & ~refused;
    warp.exec = refused;
    warp.exitLanes();
    warp.exec = rest;
  }
  warp.growLocal(static_cast<uint32_t>(most));
  forEachLane(warp, [&](int number) {
    const auto lane = static_cast<size_t>(number);
    result[lane] = static_cast<Word>(begin[lane]);
    stack[lane] = begin[lane] + bytes[lane];
    std::memset(warp.localWritten(number) + begin[lane], 0, bytes[lane]);
  });
}

/// Slot 0: the stack's end; slot 1: its former end.
template <class Word> static void restoreStack(Warp &warp, const Step &step) {
  auto *const stack = warp.reg<uint64_t>(step.slots[0]);
  const auto *const saved = warp.reg<Word>(step.slots[1]);
  const uint64_t least = uint64_t{warp.path.local} + step.detail;
  forEachLane(warp, [&](int lane) {
    if (saved[lane] < least || saved[lane] > stack[lane])
      warp.report(Check::bounds, step, lane,
                  fmt::format("restores the stack to {}, but it lies from {} to {}", saved[lane], least, stack[lane]));
    else
      stack[lane] = saved[lane];
  });
}

/// `.u32` or `.u64`.
static Type takeAddressType(Decoder &d) {
  const Type type = d.type();
  if (type != Type::u32 && type != Type::u64)
    d.unsupported();
  return type;
}

static void decodeAlloca(Decoder &d) {
  d.expectTarget(52, 73);
  const Type type = takeAddressType(d);
  d.expectCount(2, 3);
  uint64_t align = 8;
  if (d.count() == 3) {
    align = d.operand(2).bits;
    if (d.operand(2).kind != Operand::Kind::integer || !std::has_single_bit(align) || align > uint64_t{1} << 23)
      d.wrong("an alignment that is a power of two up to 2^23");
  }
  d.emit(type == Type::u64 ? allocate<uint64_t> : allocate<uint32_t>,
         {d.result(0, type), d.source(1, type), d.builder.stackSlot()}, std::max<uint64_t>(align, 8));
}

static void decodeStacksave(Decoder &d) {
  d.expectTarget(52, 73);
  const Type type = takeAddressType(d);
  d.expectCount(1, 1);
  const auto pick = []<class T>() {
    return elementwise<T, uint64_t>([](uint64_t stack) { return static_cast<T>(stack); });
  };
  d.emit(onWords(type, pick), {d.result(0, type), d.builder.stackSlot()});
}

static void decodeStackrestore(Decoder &d) {
  d.expectTarget(52, 73);
  const Type type = takeAddressType(d);
  d.expectCount(1, 1);
  d.emit(type == Type::u64 ? restoreStack<uint64_t> : restoreStack<uint32_t>,
         {d.builder.stackSlot(), d.source(0, type)}, d.builder.code.localBytes);
}

void addCalls(InstructionTable &table) {
  table["call"] = decodeCall;
  table["alloca"] = decodeAlloca;
  table["stacksave"] = decodeStacksave;
  table["stackrestore"] = decodeStackrestore;
}

} // namespace kiln::simulator
