// Decodes one instruction: takes its modifiers, and assigns slots to its operands.
//
// A family of instructions is a file with handlers and decode functions; each family adds its opcodes to the table. A
// modifier that no decode function takes is an error, so the simulator never runs an instruction that it misreads.

#pragma once

#include "runtime/simulator/Program.h"

#include <initializer_list>
#include <optional>
#include <span>
#include <unordered_map>

namespace kiln::simulator {

/// Lays out the frame of one function and collects its steps.
class CodeBuilder;

class Decoder {
public:
  Decoder(CodeBuilder &builder, const ptx::Instruction &instruction);

  // --- Modifiers ---------------------------------------------------------------------------------------------------
  /// Takes the modifier `name`; false if it is not there.
  bool take(std::string_view name);
  /// Takes the first of `names` that is there and returns its index, or `otherwise`.
  int takeOne(std::initializer_list<std::string_view> names, int otherwise = -1);
  /// Takes the next modifier that is a type, in textual order; throws without one.
  ptx::Type type();
  std::optional<ptx::Type> optionalType();
  /// Takes a state space with or without `::cta` or `::cluster`; generic without one.
  ptx::Space space();
  /// The remaining modifiers, in order.
  std::vector<std::string_view> rest() const;
  /// Throws for a modifier that was not taken.
  void finish() const;
  /// Throws: this instruction is not supported.
  [[noreturn]] void unsupported(const std::string &why = "") const;
  [[noreturn]] void wrong(const std::string &expected) const;
  /// Throws unless the text's `.target` and `.version` are at least these: 90 is sm_90, 81 is version 8.1.
  void expectTarget(int target, int version) const;
  std::string spelling() const;

  // --- Operands ----------------------------------------------------------------------------------------------------
  std::span<const ptx::Operand> operands() const { return list; }
  size_t count() const { return list.size(); }
  void expectCount(size_t least, size_t most) const;
  const ptx::Operand &operand(size_t i) const;
  std::span<const ptx::Operand> elements(const ptx::Operand &group) const;
  /// The frame offset of a source operand of `type`: a register, or a constant.
  uint32_t source(const ptx::Operand &operand, ptx::Type type);
  uint32_t source(size_t i, ptx::Type type) { return source(operand(i), type); }
  /// The frame offset of a variable's address.
  uint32_t variable(const ptx::Operand &operand, ptx::Type type);
  /// Throws for a register of integers for a float type, or of floats for an integer type, of any size.
  void expectKind(const ptx::Operand &operand, ptx::Type type) const;
  /// The frame offset of a result register of `type`; a sink (`_`) gets an unused register.
  uint32_t result(const ptx::Operand &operand, ptx::Type type);
  uint32_t result(size_t i, ptx::Type type) { return result(operand(i), type); }
  /// The frame offset of a source predicate; `negated` says whether it must be inverted.
  uint32_t predicate(const ptx::Operand &operand, bool &negated);
  /// A constant of 32 equal lanes of `bytes` bytes (4 or 8).
  uint32_t constant(uint64_t bits, int bytes);
  /// The declared type of a register operand; throws for other operands.
  ptx::Type registerType(const ptx::Operand &operand) const;
  /// The source of the lanes' addresses, and an offset.
  struct Address {
    uint32_t slot = Step::none; // none: the offset is the whole address
    bool wide = false;          // 8-byte lanes
    int64_t offset = 0;
    ptx::Space space = ptx::Space::generic;
  };
  Address address(const ptx::Operand &operand, ptx::Space space);
  /// The address of a variable in its state space (`isGeneric`: as a generic address).
  int64_t variableAddress(const ptx::Operand &operand, bool isGeneric);
  const ptx::Variable &variableOf(const ptx::Operand &operand) const;
  /// Whether a variable is in the function's own part of local memory, so that its address depends on the call.
  bool isInFrame(const ptx::Operand &operand) const;

  /// Appends a step with the instruction's guard.
  Step &emit(Handler handler, std::initializer_list<uint32_t> slots = {}, uint64_t detail = 0);
  /// As above, for exactly as many operands as there are types: a result of the first one and sources of the others.
  /// Throws without a handler, because the instruction has none for its types.
  Step &emitOn(Handler handler, std::initializer_list<ptx::Type> types, uint64_t detail = 0);
  /// Appends slots to the code's lists and assigns them to the step.
  void giveList(Step &step, const std::vector<uint32_t> &slots);
  const ptx::Instruction &instruction;
  CodeBuilder &builder;

private:
  void expectWhole(const ptx::Operand &operand) const;
  std::span<const ptx::Operand> list;
  std::span<const std::string_view> modifiers;
  uint32_t taken = 0; // one bit per modifier
};

using DecodeFunction = void (*)(Decoder &);
using InstructionTable = std::unordered_map<std::string_view, DecodeFunction>;

// One function per family.
void addArithmetic(InstructionTable &table);
void addFloatFunctions(InstructionTable &table);
void addLogic(InstructionTable &table);
void addCompare(InstructionTable &table);
void addConvert(InstructionTable &table);
void addMoves(InstructionTable &table);
void addVideo(InstructionTable &table);
void addMma(InstructionTable &table);
void addControl(InstructionTable &table);
void addCalls(InstructionTable &table);
void addAccess(InstructionTable &table);
/// Takes the scope of a strong access or fence, if there is one. Whether it is the block: .cta, or .cluster, because a
/// cluster has one block.
bool takeScope(Decoder &d);
void addAtomics(InstructionTable &table);
void addExchange(InstructionTable &table);
void addBarriers(InstructionTable &table);
void addMatrix(InstructionTable &table);
void addAsyncCopies(InstructionTable &table);
void addWmma(InstructionTable &table);
void addMbarriers(InstructionTable &table);
void addTensorMaps(InstructionTable &table);
void addWgmma(InstructionTable &table);

/// The constant for a number of `type`: integers unchanged, floats converted to its width.
uint64_t constantBits(const ptx::Operand &number, ptx::Type type);
/// Bytes per lane of a register of this type: 4 or 8; 0 for a predicate.
inline int laneBytes(ptx::Type type) { return type == ptx::Type::pred ? 0 : ptx::bitsOf(type) <= 32 ? 4 : 8; }

} // namespace kiln::simulator
