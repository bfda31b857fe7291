// The names of a function body: registers, variables and labels, in nested braces. A label may be used before its
// definition, and from inner braces. Several braces may define one name.

#pragma once

#include "runtime/simulator/ptx/Module.h"

#include <unordered_map>

namespace kiln::ptx {

class Scopes {
public:
  struct Name {
    enum class Kind : uint8_t { reg, range, variable } kind;
    int index = -1;
    int64_t count = 0; // of a range's registers
    Type type = Type::b32;
  };

  explicit Scopes(Function &function) : function(function) { open(); }
  void open();
  void close() { current = scopes[static_cast<size_t>(current)].parent; }

  /// Declares; false when the braces have that name already.
  bool addRegister(std::string_view name, Type type);
  bool addRegisters(std::string_view prefix, int64_t count, Type type);
  bool addVariable(Variable variable);
  /// Operand that `name` means, or one of kind none.
  Operand find(std::string_view name);

  /// The label's number; the first use makes it.
  int label(std::string_view name);
  /// Declare a list of branch targets (labels), of call targets (functions), and what an indirect call looks like; such
  /// names are the function's.
  void addBranchTargets(std::string_view name, std::vector<int> labels);
  void addCallTargets(std::string_view name, std::vector<int> functions);
  void addPrototype(std::string_view name, Prototype prototype);
  /// The operand that the name of a list or of a prototype is (of kind list, targets or prototype), or of kind none.
  Operand findTargets(std::string_view name) const;
  /// Defines the label at the next instruction; false if these braces define it already.
  bool placeLabel(std::string_view name);
  /// Binds uses in inner braces to labels of outer braces. Returns the name of an undefined label, or nothing.
  std::string_view resolveLabels();

private:
  struct Scope {
    int parent;
    std::unordered_map<std::string_view, Name> names;
    std::unordered_map<std::string_view, Name> ranges; // `%r<10>` by `%r`, which may be a name as well
    std::unordered_map<std::string_view, int> labels;  // used or placed here
  };
  Scope &top() { return scopes[static_cast<size_t>(current)]; }
  int makeRegister(std::string_view name, Type type, int number);

  Function &function;
  std::vector<Scope> scopes;
  std::unordered_map<std::string_view, std::pair<Operand::Kind, int>> targets;
  int current = -1;
};

} // namespace kiln::ptx
