// Modifiers and operands.

#include "runtime/simulator/Decoder.h"

#include "dialect/dsl/Types.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/ptx/Parser.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Type;

Decoder::Decoder(CodeBuilder &builder, const ptx::Instruction &instruction)
    : instruction(instruction), builder(builder), list(builder.function.operandsOf(instruction)),
      modifiers(builder.function.modifiersOf(instruction)) {
  if (modifiers.size() > 32)
    wrong("at most 32 modifiers");
}

/// The number of `sm_90a` (90) or of version `8.1` (81).
static int parseVersion(std::string_view text) {
  int number = 0;
  for (const char c : text)
    if (c >= '0' && c <= '9')
      number = std::min(10 * number + (c - '0'), 1 << 20);
  return number;
}

void Decoder::expectTarget(int target, int version) const {
  const ptx::Module &module = builder.module;
  if (parseVersion(module.target) < target)
    wrong(fmt::format("'.target sm_{}' or above, but got '{}',", target, module.target));
  if (parseVersion(module.version) < version)
    wrong(fmt::format("'.version {}.{}' or above, but got '{}',", version / 10, version % 10, module.version));
}

std::string Decoder::spelling() const {
  std::string text(instruction.opcode);
  for (const std::string_view modifier : modifiers)
    text += fmt::format(".{}", modifier);
  return text;
}

void Decoder::unsupported(const std::string &why) const {
  throw Error(fmt::format("PTX line {}: expected an instruction that the simulator supports, but got '{}'{}{}",
                          instruction.place.line, spelling(), why.empty() ? "" : ": ", why));
}

void Decoder::wrong(const std::string &expected) const {
  throw Error(fmt::format("PTX line {}: expected {} in '{}'", instruction.place.line, expected, spelling()));
}

// --- Modifiers -----------------------------------------------------------------------------------------------------

bool Decoder::take(std::string_view name) {
  for (size_t i = 0; i < modifiers.size(); ++i)
    if (!(taken >> i & 1) && modifiers[i] == name) {
      taken |= 1u << i;
      return true;
    }
  return false;
}

int Decoder::takeOne(std::initializer_list<std::string_view> names, int otherwise) {
  int number = 0;
  for (const std::string_view name : names) {
    if (take(name))
      return number;
    ++number;
  }
  return otherwise;
}

std::optional<Type> Decoder::optionalType() {
  for (size_t i = 0; i < modifiers.size(); ++i)
    if (!(taken >> i & 1))
      if (const std::optional<Type> type = ptx::typeNamed(modifiers[i])) {
        taken |= 1u << i;
        return type;
      }
  return std::nullopt;
}

Type Decoder::type() {
  const std::optional<Type> found = optionalType();
  if (!found)
    wrong("a type");
  return *found;
}

ptx::Space Decoder::space() {
  for (const ptx::Space space :
       {ptx::Space::global, ptx::Space::shared, ptx::Space::local, ptx::Space::constant, ptx::Space::param})
    if (take(nameOf(space)))
      return space;
  if (take("shared::cta") || take("shared::cluster")) // a cluster is one block
    return ptx::Space::shared;
  if (take("param::entry") || take("param::func"))
    return ptx::Space::param;
  return ptx::Space::generic;
}

std::vector<std::string_view> Decoder::rest() const {
  std::vector<std::string_view> left;
  for (size_t i = 0; i < modifiers.size(); ++i)
    if (!(taken >> i & 1))
      left.push_back(modifiers[i]);
  return left;
}

void Decoder::finish() const {
  if (const std::vector<std::string_view> left = rest(); !left.empty())
    unsupported(fmt::format("'.{}' does not belong there", left.front()));
}

// --- Operands ------------------------------------------------------------------------------------------------------

void Decoder::expectCount(size_t least, size_t most) const {
  if (list.size() < least || list.size() > most)
    wrong(least == most ? fmt::format("{} operands, but got {},", least, list.size())
                        : fmt::format("{} to {} operands, but got {},", least, most, list.size()));
}

const Operand &Decoder::operand(size_t i) const {
  if (i >= list.size())
    wrong(fmt::format("more than {} operands", list.size()));
  return list[i];
}

std::span<const Operand> Decoder::elements(const Operand &group) const {
  if (group.kind != Operand::Kind::vector && group.kind != Operand::Kind::list && group.kind != Operand::Kind::pair)
    return {&group, 1};
  return builder.function.elementsOf(group);
}

Type Decoder::registerType(const Operand &operand) const {
  if (operand.kind != Operand::Kind::reg)
    wrong("a register");
  return builder.function.registers[static_cast<size_t>(operand.index)].type;
}

uint64_t constantBits(const Operand &number, Type type) {
  switch (number.kind) {
  case Operand::Kind::single:
    return type == Type::f64
               ? std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(number.bits))))
               : number.bits;
  case Operand::Kind::real:
    if (ptx::bitsOf(type) == 64)
      return number.bits;
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(number.bits)));
  default:
    break;
  }
  const int bits = std::min(ptx::bitsOf(type), 64);
  return bits == 64 ? number.bits : number.bits & ((uint64_t{1} << bits) - 1);
}

uint32_t Decoder::constant(uint64_t bits, int bytes) { return builder.constantSlot(bits, bytes); }

/// Whether both are integers, both are floats, or both are pairs of halves. Untyped ones agree with all; a register of
/// a pair is a word, too.
static bool agreeInKind(Type declared, Type type) {
  const auto isPair = [](Type each) { return each == Type::f16x2 || each == Type::bf16x2; };
  if (ptx::isUntyped(declared) || ptx::isUntyped(type))
    return true;
  return isPair(type) ? isPair(declared) : (ptx::isFloat(declared) && !isPair(declared)) == ptx::isFloat(type);
}

/// Whether an instruction of `type` may have a register declared as `declared`.
static bool agree(Type declared, Type type) {
  return ptx::bitsOf(declared) == ptx::bitsOf(type) && agreeInKind(declared, type);
}

void Decoder::expectKind(const Operand &operand, Type type) const {
  if (operand.kind == Operand::Kind::reg && !agreeInKind(registerType(operand), type))
    wrong(fmt::format("a register of type .{}, but '{}' is .{},", ptx::nameOf(type),
                      builder.function.registers[static_cast<size_t>(operand.index)].name,
                      ptx::nameOf(registerType(operand))));
}

uint32_t Decoder::variable(const Operand &operand, Type type) {
  const auto address = static_cast<uint64_t>(variableAddress(operand, false));
  return isInFrame(operand) ? builder.frameAddressSlot(address, laneBytes(type) == 8)
                            : constant(address, laneBytes(type));
}

uint32_t Decoder::source(const Operand &operand, Type type) {
  const int bytes = laneBytes(type);
  expectWhole(operand);
  const bool isMove = instruction.opcode == "mov";
  switch (operand.kind) {
  case Operand::Kind::reg: {
    const Type declared = registerType(operand);
    if (!agree(declared, type))
      wrong(fmt::format("an operand of type .{}, but '{}' is .{},", ptx::nameOf(type),
                        builder.function.registers[static_cast<size_t>(operand.index)].name, ptx::nameOf(declared)));
    return builder.readSlot(operand.index);
  }
  case Operand::Kind::special:
    if (!isMove && operand.index != static_cast<int>(ptx::Special::warpSize))
      wrong("a register or a number; only mov reads special registers,");
    return builder.specialSlot(operand.index, bytes == 8);
  case Operand::Kind::integer:
    if (ptx::isFloat(type))
      wrong("a number with a point");
    [[fallthrough]];
  case Operand::Kind::single:
  case Operand::Kind::real:
    if (operand.kind != Operand::Kind::integer && !ptx::isFloat(type) && !ptx::isUntyped(type))
      wrong("a whole number");
    if (bytes == 0)
      return builder.constantSlot(operand.bits ? allLanes : 0, 0);
    return constant(constantBits(operand, type), bytes);
  case Operand::Kind::variable:
    if (!isMove)
      wrong("a register or a number; only mov reads the address of a variable,");
    return variable(operand, type);
  case Operand::Kind::function:
    return constant(functionAddress(operand.index), bytes);
  default:
    wrong("a register or a number");
  }
}

void Decoder::expectWhole(const Operand &operand) const {
  if (!operand.selector.empty())
    wrong(fmt::format("a whole register, but got its part '.{}',", operand.selector));
}

uint32_t Decoder::result(const Operand &operand, Type type) {
  expectWhole(operand);
  const bool discards = instruction.opcode == "atom" || instruction.opcode == "mbarrier" ||
                        instruction.opcode == "setp" || &operand != list.data();
  if (operand.kind == Operand::Kind::sink && discards)
    return builder.scratchSlot(std::max(laneBytes(type), 4));
  const Type declared = registerType(operand);
  if (!agree(declared, type))
    wrong(fmt::format("a result of type .{}, but '{}' is .{},", ptx::nameOf(type),
                      builder.function.registers[static_cast<size_t>(operand.index)].name, ptx::nameOf(declared)));
  return builder.writeSlot(operand.index);
}

uint32_t Decoder::predicate(const Operand &operand, bool &negated) {
  negated = operand.negated;
  return source(operand, Type::pred);
}

bool Decoder::isInFrame(const Operand &operand) const {
  return operand.isLocal && builder.localOffset(operand.index) != Step::none;
}

const ptx::Variable &Decoder::variableOf(const Operand &operand) const {
  return operand.isLocal ? builder.function.variables[static_cast<size_t>(operand.index)]
                         : builder.module.variables[static_cast<size_t>(operand.index)];
}

int64_t Decoder::variableAddress(const Operand &operand, bool isGeneric) {
  const ptx::Variable &variable = variableOf(operand);
  int64_t address = static_cast<int64_t>(operand.bits);
  uint64_t window = 0;
  if (isInFrame(operand)) {
    address += builder.localOffset(operand.index);
    window = localWindow;
  } else if (variable.space == ptx::Space::param) {
    const std::vector<int> &parameters = builder.function.parameters;
    const auto at = std::find(parameters.begin(), parameters.end(), operand.index);
    address += builder.program.parameters[static_cast<size_t>(at - parameters.begin())].offset;
    window = paramWindow;
  } else {
    address += builder.storage.addressOf(operand.isLocal ? builder.functionIndex : -1, operand.index);
    window = variable.space == ptx::Space::shared ? sharedWindow : 0;
  }
  return isGeneric ? address | static_cast<int64_t>(window) : address;
}

Decoder::Address Decoder::address(const Operand &operand, ptx::Space space) {
  if (operand.kind != Operand::Kind::address)
    wrong("an address in brackets");
  Address address;
  address.space = space;
  address.offset = static_cast<int64_t>(operand.bits);
  if (operand.base == Operand::Kind::reg) {
    const Type declared = builder.function.registers[static_cast<size_t>(operand.index)].type;
    if (ptx::isFloat(declared))
      wrong(fmt::format("an address in an integer register, but got .{},", ptx::nameOf(declared)));
    address.wide = laneBytes(declared) == 8;
    address.slot = builder.readSlot(operand.index);
  } else if (operand.base == Operand::Kind::variable) {
    if (const ptx::Space own = variableOf(operand).space; space != ptx::Space::generic && own != space)
      wrong(
          fmt::format("a variable in .{}, but '{}' is in .{},", nameOf(space), variableOf(operand).name, nameOf(own)));
    address.offset = variableAddress(operand, space == ptx::Space::generic);
    if (isInFrame(operand)) { // it also has parameters of functions and of calls
      if (space == ptx::Space::param)
        address.space = ptx::Space::local;
      address.slot = builder.frameAddressSlot(static_cast<uint64_t>(address.offset), true);
      address.wide = true;
      address.offset = 0;
    }
  }
  return address;
}

Step &Decoder::emit(Handler handler, std::initializer_list<uint32_t> slots, uint64_t detail) {
  Step step;
  step.run = handler;
  std::copy(slots.begin(), slots.end(), step.slots.begin());
  step.detail = detail;
  if (instruction.guard >= 0) {
    step.guard = builder.readSlot(instruction.guard);
    step.guardNegated = instruction.guardNegated;
  }
  builder.code.steps.push_back(step);
  builder.code.places.push_back(instruction.place);
  return builder.code.steps.back();
}

Step &Decoder::emitOn(Handler handler, std::initializer_list<Type> types, uint64_t detail) {
  if (!handler)
    unsupported();
  expectCount(types.size(), types.size());
  std::array<uint32_t, 5> slots = Step().slots;
  for (size_t i = 0; i < types.size(); ++i)
    slots[i] = i == 0 ? result(i, types.begin()[i]) : source(i, types.begin()[i]);
  Step &step = emit(handler, {}, detail);
  step.slots = slots;
  return step;
}

void Decoder::giveList(Step &step, const std::vector<uint32_t> &slots) {
  step.list = static_cast<uint32_t>(builder.code.lists.size());
  step.count = static_cast<uint32_t>(slots.size());
  builder.code.lists.insert(builder.code.lists.end(), slots.begin(), slots.end());
}

} // namespace kiln::simulator
