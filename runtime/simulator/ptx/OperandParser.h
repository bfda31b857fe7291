// The parts of the parser: words of PTX text, names of a function body, and the operands between an opcode and its
// semicolon.

#pragma once

#include "runtime/simulator/ptx/Module.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kiln::ptx {

// The words of PTX text.
//
// `ld.global.v4.b32` is one word `ld` and three suffixes. `.reg` at the start of a statement is a suffix, too. A suffix
// may begin with a digit (`.2d`) and have parts (`.shared::cta`, `.cta_group::1`). Numbers keep their bits:
// `0f3F800000` is an f32, `0d…` an f64, others are integers or decimal floats. Comments are passed over.

struct Token {
  enum class Kind : uint8_t { word, suffix, integer, single, real, text, mark, end };
  Kind kind = Kind::end;
  std::string_view text; // of a suffix without its dot, of a text without its quotes
  uint64_t bits = 0;     // of a number: an integer, or the bits of an f32 (single) or an f64 (real)
  int line = 1;

  bool is(char mark) const { return kind == Kind::mark && text[0] == mark; }
  bool isWord(std::string_view word) const { return kind == Kind::word && text == word; }
  bool isSuffix(std::string_view suffix) const { return kind == Kind::suffix && text == suffix; }
};

/// Cuts a text, which must outlive the tokens, into tokens one at a time. Throws Error for a character or number that
/// PTX does not have.
class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) {}
  Token next();
  int line() const { return lineNumber; }
  /// Passes over everything up to and including the `}` that closes the `{` just read.
  void skipBraces();

private:
  void skipSpace();
  Token number(Token token);
  bool at(size_t place, char c) const { return place < text.size() && text[place] == c; }

  std::string_view text;
  size_t place = 0;
  int lineNumber = 1;
};

// The names of a function body: registers, variables and labels, in nested braces. A label may be used before its
// definition, and from inner braces. Several braces may define one name.

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
  /// Declare a list of branch targets (labels), a list of call targets (functions), and the prototype of an indirect
  /// call. Their names belong to the function.
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

/// The tokens of a text, one at a time.
class Tokens {
public:
  explicit Tokens(std::string_view text) : lexer(text) { advance(); }
  const Token &current() const { return token; }
  void advance() {
    before = token.line;
    token = lexer.next();
  }
  /// As advance(), inside a construct that `closing` ends: the end of the text is an error here.
  void advanceWithin(const char *closing) {
    if (token.kind == Token::Kind::end)
      fail(closing);
    advance();
  }
  bool accept(char mark) {
    if (!token.is(mark))
      return false;
    advance();
    return true;
  }
  void expect(char mark);
  /// Throws Error: expected this, but got the current token.
  [[noreturn]] void fail(const std::string &expected) const;
  /// Passes over a block whose `{` is the current token.
  void skipBraces();
  /// Line of the token before the current one.
  int previousLine() const { return before; }
  /// A number or the address of a variable or function of the module, generic or not.
  Initialiser initialiser(const Module &module);
  /// A number with an optional sign, at the current token. The instruction of the operand determines its type.
  Operand number();
  /// As number(), after a sign that was already read.
  Operand number(bool negative);

private:
  Lexer lexer;
  Token token;
  int before = 1;
};

/// Whether the operand of such an instruction may be a label.
bool isBranch(std::string_view opcode);

class OperandParser {
public:
  OperandParser(Module &module, Function &function, Scopes &scopes, Tokens &tokens, bool branch)
      : module(module), function(function), scopes(scopes), tokens(tokens), branch(branch) {}
  /// Reads the operands up to the semicolon into the function's pool.
  void parse(Instruction &instruction);

private:
  Operand operand();
  Operand name();
  Operand address();
  Operand group(char close, Operand::Kind kind);
  void finish(Operand &group, const std::vector<Operand> &elements);

  Module &module;
  Function &function;
  Scopes &scopes;
  Tokens &tokens;
  bool branch;
  int depth = 0;
};

} // namespace kiln::ptx
