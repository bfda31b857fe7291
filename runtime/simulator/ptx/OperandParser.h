// Parses the operands between an opcode and its semicolon, from a stream of tokens.

#pragma once

#include "runtime/simulator/ptx/Lexer.h"
#include "runtime/simulator/ptx/Scopes.h"

#include <string>

namespace kiln::ptx {

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
