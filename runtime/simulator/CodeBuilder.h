// Decodes a kernel and the functions that it can reach.

#pragma once

#include "runtime/simulator/Decoder.h"
#include "runtime/simulator/Memory.h"
#include "runtime/simulator/ptx/Flow.h"

namespace kiln::simulator {

/// Where the variables of a module and of its kernels lie.
class Storage {
public:
  /// Places the shared variables that `functions` name: static ones, then, at a multiple of 1024, the dynamic ones.
  Storage(const ptx::Module &module, Memory &memory, const std::vector<int> &functions);
  /// Address of a variable of the module (function −1) or of a function, in its own space; what is not shared is made
  /// at the first use.
  int64_t addressOf(int function, int variable);
  uint32_t sharedBytes() const { return static_cast<uint32_t>(shared); }
  /// Of them, what static variables take, as a GPU counts: up to the alignment of the dynamic ones.
  uint32_t staticSharedBytes() const { return static_cast<uint32_t>(staticShared); }
  /// What was allocated for those that are not shared.
  const std::vector<PlacedVariable> &allocated() const { return variables; }

private:
  const ptx::Variable &variableAt(std::pair<int, int> key) const;
  void initialise(char *to, const ptx::Variable &variable);
  const ptx::Module &module;
  Memory &memory;
  std::map<std::pair<int, int>, int64_t> addresses;
  std::vector<PlacedVariable> variables;
  std::vector<std::pair<char *, const ptx::Variable *>> toInitialise; // each may have the address of the next
  int64_t shared = 0, staticShared = 0;
};

/// Decodes the kernel called `name`; `names` says more of its shared memory than the text's own comments do
/// (SharedNames.h); `sharedBytesOfGpu`: what a block may have on the GPU that it is for, 0: on the text's own target.
/// Throws Error with the PTX line for what is no kernel or not supported.
std::shared_ptr<const Program> buildProgram(std::shared_ptr<const ptx::Module> module, const std::string &name,
                                            Memory &memory, const std::string &names = {},
                                            int64_t sharedBytesOfGpu = 0);

/// The opcodes that are known, by name: what stands before the first dot.
std::vector<std::string_view> knownOpcodes();

/// Where the .local and .param variables of a function lie in a lane's memory.
struct LocalLayout {
  std::vector<int64_t> offsets; // −1: it lies elsewhere
  uint32_t bytes = 0;
};
LocalLayout layOutLocals(const ptx::Function &function);

class CodeBuilder {
public:
  /// The program knows already which functions of the module it has.
  CodeBuilder(const ptx::Module &module, int functionIndex, Program &program, Storage &storage);
  /// Decodes the body. Where `unsure` says that an instruction reads a register which may not have been written, a step
  /// before it looks.
  Code build(const std::vector<ptx::Use> &unsure = {});
  /// What the instructions that were decoded read and write, in their order.
  std::vector<ptx::Use> uses;

  const ptx::Module &module;
  const ptx::Function &function;
  const int functionIndex;
  Program &program;
  Storage &storage;
  Code code;

  uint32_t registerSlot(int index);
  /// The same for a register that the instruction being decoded reads or writes.
  uint32_t readSlot(int index);
  uint32_t writeSlot(int index);
  uint32_t constantSlot(uint64_t bits, int bytes);
  uint32_t specialSlot(int index, bool wide);
  /// The address of a byte of the function's part of local memory; `offset` may have a window's bits.
  uint32_t frameAddressSlot(uint64_t offset, bool wide);
  uint32_t scratchSlot(int bytes);
  /// The condition-code register: a carry a lane.
  uint32_t carrySlot();
  /// Where the stack ends that alloca takes from: 8 bytes a lane, an address in local memory.
  uint32_t stackSlot();
  /// Whether the function has an alloca.
  bool takesFromStack() const;
  /// Byte offset of a .local or .param variable in a lane's local memory; Step::none for a kernel's parameter.
  uint32_t localOffset(int variable) const;
  /// Index in the program of a function of the module.
  int codeOf(int function) const;

private:
  void decode(const ptx::Instruction &instruction);
  void buildSystemFunction();
  void watchRegisters();
  void noteInstruction(const ptx::Instruction &instruction, size_t first);
  void markPlain();
  void placeImage();
  void emitClearing();
  void emitLooking(const ptx::Use &use);
  void emitNoting(size_t firstUse);

  std::map<int, uint32_t> writtenSlots; // of registers that are watched: the lanes that have written them
  int current = 0;                      // the instruction that is decoded

  std::vector<uint32_t> registers;
  std::map<std::pair<uint64_t, int>, uint32_t> constants;
  std::map<std::pair<int, bool>, uint32_t> specials;
  std::map<std::pair<uint64_t, bool>, uint32_t> frameAddresses;
  uint32_t carry = Step::none, stack = Step::none;
  LocalLayout locals;
};

} // namespace kiln::simulator
