// PTX as a data structure, which the parser makes and the decoder reads. Names are resolved: a register, variable,
// label or function is an index. Text is that of the source, which the module owns.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kiln::ptx {

/// Fundamental types, with the packed ones that registers never have.
enum class Type : uint8_t {
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  u16x2,
  s16x2,
  f16,
  bf16,
  f32,
  f64,
  tf32,
  f16x2,
  bf16x2,
  e4m3,
  e5m2,
  f32x2
};
int bitsOf(Type type); // 1 for pred
const char *nameOf(Type type);
std::optional<Type> typeNamed(std::string_view name);
inline int bytesOf(Type type) { return bitsOf(type) / 8; }
inline bool isFloat(Type type) { return type >= Type::f16; }
inline bool isSigned(Type type) { return type >= Type::s8 && type <= Type::s64; }
inline bool isUntyped(Type type) { return type <= Type::b128; }

/// State spaces of memory.
enum class Space : uint8_t { generic, global, shared, local, constant, param };
const char *nameOf(Space space);

/// A place in the text, and in the C++ source when `.loc` says so.
struct Place {
  int line = 0;
  int file = 0, sourceLine = 0; // of `.loc`; file 0: none
};

struct Register {
  std::string_view name;
  Type type = Type::b32;
  int number = -1; // of `%r<10>`; −1: the name stands alone
};

/// A number in an initialiser, or the address of a variable or of a function.
struct Initialiser {
  uint64_t bits = 0;
  int variable = -1; // its address, `bits` beyond
  int function = -1;
};

struct Variable {
  std::string_view name;
  Space space = Space::global;
  Type type = Type::b8;
  int64_t count = 1; // elements; 0: `[]`, dynamic shared memory
  int64_t align = 1;
  std::vector<Initialiser> values;
  bool isExternal = false;
  int line = 0;

  int64_t bytes() const { return count * bytesOf(type); }
};

struct Operand {
  enum class Kind : uint8_t {
    none,
    reg,
    special,
    integer,
    single,
    real,
    variable,
    function,
    label,
    address,
    vector,
    list,
    pair,
    sink,
    prototype,
    targets
  };
  Kind kind = Kind::none;
  bool negated = false;   // `!%p`
  bool isLocal = false;   // a variable of the function rather than of the module
  Kind base = Kind::none; // of an address: reg, variable or integer
  int index = -1;         // register, special register, variable, function, label, prototype; the base of an address
  uint32_t first = 0,
           count = 0;        // elements of a vector, list or pair, or an address's coordinates, in the function's pool
  uint64_t bits = 0;         // of a number; bytes that an address is beyond its base
  std::string_view selector; // `b0` of `%r1.b0`: a part of a register
};

struct Instruction {
  std::string_view opcode;                       // `ld` of `ld.global.b32`
  uint32_t firstModifier = 0, modifierCount = 0; // `global`, `b32`: in the function's list
  Place place;
  int guard = -1; // register
  bool guardNegated = false;
  uint32_t first = 0, count = 0; // operands in the function's pool
};

/// The parameters and results of an indirect call.
struct Prototype {
  std::vector<Variable> results, parameters;
  bool registerParameters = false;
};

struct Function {
  std::string_view name;
  std::string fault; // what was wrong with its text, said to those who use it; then nothing else holds
  bool isEntry = false, hasBody = false;
  std::vector<int> parameters, results; // variables (or, with registerParameters, registers) of the function
  bool registerParameters = false;
  std::vector<Register> registers;
  std::vector<Variable> variables; // its own, parameters among them
  std::vector<Operand> pool;
  std::vector<std::string_view> modifiers;
  std::vector<Instruction> instructions;
  std::vector<int> labels;                     // label → index of the instruction that it stands before
  std::vector<std::vector<int>> branchTargets; // of `.branchtargets`: lists of labels
  std::vector<std::vector<int>> callTargets;   // of `.calltargets`: lists of functions
  std::vector<Prototype> prototypes;           // of `.callprototype`
  Place place;
  std::array<int, 3> block = {0, 0, 0};   // .maxntid or .reqntid, zeros: open
  bool blockIsFixed = false;              // .reqntid
  int maxRegisters = 0;                   // .maxnreg, 0: open
  std::array<int, 3> cluster = {1, 1, 1}; // .reqnctapercluster

  std::span<const Operand> operandsOf(const Instruction &instruction) const {
    return {pool.data() + instruction.first, instruction.count};
  }
  std::span<const Operand> elementsOf(const Operand &operand) const {
    return {pool.data() + operand.first, operand.count};
  }
  std::span<const std::string_view> modifiersOf(const Instruction &instruction) const {
    return {modifiers.data() + instruction.firstModifier, instruction.modifierCount};
  }
  bool has(const Instruction &instruction, std::string_view modifier) const {
    return std::ranges::count(modifiersOf(instruction), modifier) > 0;
  }
};

struct Module {
  std::unique_ptr<const std::string> text;
  std::string_view version, target; // empty: the text does not say
  int versionLine = 1, targetLine = 1;
  int addressBits = 64;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::string_view> files; // of `.file`, by number; 0 is none

  /// Index of a function, −1 when there is none.
  int find(std::string_view name) const { return findIn(functions, functionsByName, name); }
  /// The same of a variable.
  int findVariable(std::string_view name) const { return findIn(variables, variablesByName, name); }

private:
  /// Where the first elements of a list, which keep their names, stand in it.
  struct ByName {
    std::unordered_map<std::string_view, int> places;
    size_t count = 0; // of those elements
  };
  template <class Named> static int findIn(const std::vector<Named> &all, ByName &known, std::string_view name) {
    for (; known.count < all.size(); ++known.count)
      known.places.emplace(all[known.count].name, static_cast<int>(known.count));
    const auto found = known.places.find(name);
    return found == known.places.end() ? -1 : found->second;
  }
  mutable ByName functionsByName, variablesByName;
};

// --- Control flow ---------------------------------------------------------------------------------------------------

/// For each branch, its immediate post-dominator: the first instruction that every path from it to the function's end
/// passes. −1 if that is the end, and for all other instructions.
std::vector<int> meetingPoints(const Function &function);

/// A register that an instruction reads or writes.
struct Use {
  int instruction = 0, reg = 0;
  bool isWrite = false;
};

/// The reads, each once, of registers that some path through the function has not written by then. Writes of guarded
/// instructions do not count. `uses` are in the order of the instructions.
std::vector<Use> unsureReads(const Function &function, const std::vector<Use> &uses);

} // namespace kiln::ptx
