// Decodes a kernel and the functions that it can reach into steps.

#pragma once

#include "runtime/simulator/Decoder.h"
#include "runtime/simulator/Memory.h"
#include "runtime/simulator/Program.h"
#include "runtime/simulator/ptx/Module.h"

#include <unordered_set>

namespace kiln::simulator {

inline int64_t roundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// The forms that a function has; unrolled code repeats few of them.
class KnownForms {
public:
  /// Throws unless the PTX ISA has the instruction with its modifiers, in any order, for the text's `.target`.
  /// Instructions whose decode functions know all their forms (products of matrices, video, control flow) always pass.
  void expect(const Decoder &decoder);

private:
  std::unordered_set<std::string_view> known; // spellings in the text
};

/// The addresses of the variables of a module and of its kernels.
class Storage {
public:
  /// Places the shared variables that `functions` name: static ones first, then dynamic ones at a multiple of 1024.
  Storage(const ptx::Module &module, Memory &memory, const std::vector<int> &functions);
  /// The address of a variable of the module (function −1) or of a function, in its own state space. Variables that are
  /// not shared are allocated at their first use.
  int64_t addressOf(int function, int variable);
  uint32_t sharedBytes() const { return static_cast<uint32_t>(shared); }
  /// Bytes of static shared variables, padded to the alignment of the dynamic ones, as NVIDIA's limit counts them.
  uint32_t staticSharedBytes() const { return static_cast<uint32_t>(staticShared); }
  /// The allocations of variables that are not shared.
  const std::vector<PlacedVariable> &allocated() const { return variables; }

private:
  const ptx::Variable &variableAt(std::pair<int, int> key) const;
  void initialise(char *to, const ptx::Variable &variable);
  const ptx::Module &module;
  Memory &memory;
  std::map<std::pair<int, int>, int64_t> addresses;
  std::vector<PlacedVariable> variables;
  std::vector<std::pair<char *, const ptx::Variable *>> toInitialise; // an initialiser may refer to the next variable
  int64_t shared = 0, staticShared = 0;
};

/// Decodes the kernel `name`. `names` adds names of shared memory to those in the text's comments (PlaceNames.h).
/// `sharedBytesOfGpu` is the maximum shared memory of a CTA on the GPU; 0: that of the text's target. Throws Error with
/// the PTX line for a missing kernel and for unsupported code.
std::shared_ptr<const Program> buildProgram(std::shared_ptr<const ptx::Module> module, const std::string &name,
                                            Memory &memory, const std::string &names = {},
                                            int64_t sharedBytesOfGpu = 0);

/// The known opcodes: the names before the first dot.
std::vector<std::string_view> knownOpcodes();

/// The layout of a function's .local and .param variables in a lane's memory.
struct LocalLayout {
  std::vector<int64_t> offsets; // −1: the variable is elsewhere
  uint32_t bytes = 0;
};
LocalLayout layOutLocals(const ptx::Function &function);

class CodeBuilder {
public:
  /// The program already knows which functions of the module it has.
  CodeBuilder(const ptx::Module &module, int functionIndex, Program &program, Storage &storage);
  /// Decodes the body. For a register that may be unwritten, as `unsure` says, a check is inserted before the step that
  /// reads it.
  Code build(const std::vector<ptx::Use> &unsure = {});
  /// The reads and writes of the decoded instructions, in order.
  std::vector<ptx::Use> uses;

  const ptx::Module &module;
  const ptx::Function &function;
  const int functionIndex;
  Program &program;
  Storage &storage;
  Code code;

  uint32_t registerSlot(int index);
  /// The slot of a register that the present instruction reads, or writes.
  uint32_t readSlot(int index);
  uint32_t writeSlot(int index);
  uint32_t constantSlot(uint64_t bits, int bytes);
  uint32_t specialSlot(int index, bool wide);
  /// The address of a byte in the function's part of local memory; `offset` may have the bits of a window.
  uint32_t frameAddressSlot(uint64_t offset, bool wide);
  uint32_t scratchSlot(int bytes);
  /// The condition-code register: one carry per lane.
  uint32_t carrySlot();
  /// The end of the stack for alloca: an address in local memory, 8 bytes per lane.
  uint32_t stackSlot();
  /// Whether the function uses alloca.
  bool takesFromStack() const;
  /// The byte offset of a .local or .param variable in a lane's local memory; Step::none for a kernel's parameter.
  uint32_t localOffset(int variable) const;
  /// The index in the program of a function of the module.
  int codeOf(int function) const;

private:
  void decode(const ptx::Instruction &instruction);
  void buildSystemFunction();
  void watchRegisters();
  void noteInstruction(const ptx::Instruction &instruction, size_t first);
  void markPlain();
  void placeImage();
  void addStep(const Step &step, const ptx::Place &place);
  void addStepFor(const ptx::Use &use, Step step);
  void emitClearing();
  void emitLooking(const ptx::Use &use);
  void emitNoting(size_t firstUse);

  std::map<int, uint32_t> writtenSlots; // for watched registers: the lanes that have written them
  int current = 0;                      // the instruction being decoded
  KnownForms forms;

  std::vector<uint32_t> registers;
  std::map<std::pair<uint64_t, int>, uint32_t> constants;
  std::map<std::pair<int, bool>, uint32_t> specials;
  std::map<std::pair<uint64_t, bool>, uint32_t> frameAddresses;
  uint32_t carry = Step::none, stack = Step::none;
  LocalLayout locals;
};

/// The bytes of each result and parameter of a function, preceded by the number of results.
std::vector<uint32_t> signatureOf(const ptx::Function &function);

} // namespace kiln::simulator
