// Recursive descent over directives and statements; OperandParser parses the operands of an instruction.

#include "runtime/simulator/ptx/Parser.h"

#include "dialect/dsl/Types.h"
#include "runtime/simulator/ptx/OperandParser.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::ptx {

/// The most elements of a variable, and the deepest nesting of its initialiser.
static constexpr int64_t maxElements = int64_t{1} << 36;
static constexpr int maxExtents = 64;

namespace {

class Parser {
public:
  explicit Parser(Module &module) : module(module), tokens(*module.text) {}
  void parseModule();

private:
  // --- Words -------------------------------------------------------------------------------------------------------
  [[noreturn]] void fail(const std::string &expected) const { tokens.fail(expected); }
  const Token &token() const { return tokens.current(); }
  void advance() { tokens.advance(); }
  bool accept(char mark) { return tokens.accept(mark); }
  void expect(char mark) { tokens.expect(mark); }
  int64_t integer(const char *what);
  void passPragma() {
    while (!accept(';'))
      tokens.advanceWithin("';'");
  }

  // --- Module ------------------------------------------------------------------------------------------------------
  void parseDirective();
  void parseFile();
  void parseFunctionOrPass(bool isEntry, bool isExternal);
  void parseFunction(bool isEntry, bool isExternal);
  std::string_view passFunction();
  void parseParameters(Function &function, Scopes &scopes, std::vector<int> &list);
  void parsePerformance(Function &function);
  Variable parseVariable(Space space, bool isParameter);
  void parseInitialiser(Variable &variable, int depth = 0);
  void addVariable(Variable variable);

  // --- Body --------------------------------------------------------------------------------------------------------
  void parseBody(Function &function, Scopes &scopes);
  void parseBodyDirective(Scopes &scopes);
  void parseRegisters(Scopes &scopes);
  void parseLoc();
  void parseInstruction(Function &function, Scopes &scopes);
  template <class Find> std::vector<int> parseList(Find find);
  Prototype parsePrototype();
  void parseAlias();
  void resolveAliases();

  std::vector<std::pair<int, int>> aliases; // functions: the alias, and the function that it names
  Module &module;
  Tokens tokens;
  Place place; // of the last `.loc`
};

} // namespace

int64_t Parser::integer(const char *what) {
  const bool negative = accept('-');
  if (token().kind != Token::Kind::integer)
    fail(what);
  const uint64_t value = token().bits;
  advance();
  return static_cast<int64_t>(negative ? 0 - value : value);
}

static std::optional<Space> spaceNamed(std::string_view name) {
  for (const Space space : {Space::global, Space::shared, Space::local, Space::constant, Space::param})
    if (name == nameOf(space))
      return space;
  return std::nullopt;
}

// --- Module --------------------------------------------------------------------------------------------------------

void Parser::parseModule() {
  while (token().kind != Token::Kind::end)
    parseDirective();
  resolveAliases();
}

void Parser::parseDirective() {
  bool isExternal = false;
  while (token().isSuffix("visible") || token().isSuffix("extern") || token().isSuffix("weak") ||
         token().isSuffix("common")) {
    isExternal |= token().isSuffix("extern");
    advance();
  }
  if (token().kind != Token::Kind::suffix)
    fail("a directive");
  const std::string_view name = token().text;
  advance();
  if (name == "version") {
    module.version = token().text;
    module.versionLine = token().line;
    advance();
  } else if (name == "target") {
    module.target = token().text;
    module.targetLine = token().line;
    do
      advance();
    while (accept(',') || token().kind == Token::Kind::word);
  } else if (name == "address_size") {
    module.addressBits = static_cast<int>(integer("32 or 64"));
  } else if (name == "file") {
    parseFile();
  } else if (name == "section") {
    advance();
    tokens.skipBraces();
  } else if (name == "alias") {
    parseAlias();
  } else if (name == "pragma") {
    passPragma();
  } else if (name == "entry" || name == "func") {
    parseFunctionOrPass(name == "entry", isExternal);
  } else if (const std::optional<Space> space = spaceNamed(name)) {
    if (*space == Space::local || *space == Space::param)
      fail(fmt::format("variables in .{} within a function", name));
    do {
      Variable variable = parseVariable(*space, false);
      variable.isExternal = isExternal;
      addVariable(std::move(variable));
    } while (accept(','));
    expect(';');
  } else {
    fail("a directive");
  }
}

void Parser::parseFile() {
  const int64_t number = integer("the number of a file");
  if (number < 1 || number > 1 << 20 || token().kind != Token::Kind::text)
    fail("a file's number, from 1, and its name");
  if (module.files.size() <= static_cast<size_t>(number))
    module.files.resize(static_cast<size_t>(number) + 1);
  module.files[static_cast<size_t>(number)] = token().text;
  advance();
  while (accept(','))
    integer("a time or size");
}

/// `.alias NAME, FUNCTION;`, both declared before.
void Parser::parseAlias() {
  std::array<int, 2> names{};
  for (size_t i = 0; i < 2; ++i) {
    names[i] = module.find(token().text);
    if (names[i] < 0)
      fail("a function that stands before");
    advance();
    expect(i == 0 ? ',' : ';');
  }
  aliases.emplace_back(names[0], names[1]);
}

/// Replaces aliases by their functions.
void Parser::resolveAliases() {
  const auto resolve = [&](int &function) {
    for (const auto &[alias, meant] : aliases)
      if (function == alias)
        function = meant;
  };
  if (aliases.empty())
    return;
  for (Variable &variable : module.variables)
    for (Initialiser &value : variable.values)
      resolve(value.function);
  for (Function &function : module.functions) {
    for (Operand &operand : function.pool)
      if (operand.kind == Operand::Kind::function)
        resolve(operand.index);
    for (std::vector<int> &targets : function.callTargets)
      std::for_each(targets.begin(), targets.end(), resolve);
  }
}

void Parser::addVariable(Variable variable) {
  if (const int known = module.findVariable(variable.name); known >= 0) {
    if (module.variables[static_cast<size_t>(known)].isExternal || variable.isExternal)
      return; // one of the two is only a declaration
    fail(fmt::format("one variable '{}'", variable.name));
  }
  module.variables.push_back(std::move(variable));
}

Variable Parser::parseVariable(Space space, bool isParameter) {
  Variable variable;
  variable.space = space;
  bool typed = false, ofPointee = false; // `.ptr .align 16` describes the pointee
  int64_t vector = 1, align = 0;
  while (token().kind == Token::Kind::suffix) {
    const std::string_view word = token().text;
    advance();
    if (word == "align") {
      const int64_t multiple = integer("an alignment");
      if (multiple < 1 || (multiple & (multiple - 1)) || multiple > 1 << 20)
        fail("an alignment that is a power of two");
      if (!ofPointee)
        align = multiple;
    } else if (word == "v2" || word == "v4" || word == "v8") {
      vector = word[1] - '0';
    } else if (const std::optional<Type> type = typeNamed(word); type && !typed) {
      variable.type = *type;
      typed = true;
    } else if (isParameter && word == "ptr") {
      ofPointee = true;
    } else if (!(isParameter && (word == "noalias" || spaceNamed(word))) && word != "attribute") {
      fail("a variable's type or alignment");
    }
  }
  if (!typed || variable.type == Type::pred || token().kind != Token::Kind::word)
    fail("a variable's type and name");
  variable.name = token().text;
  variable.line = token().line;
  advance();
  while (accept('[')) {
    const int64_t extent = token().is(']') ? 0 : integer("an extent");
    if (extent < 0 || extent > int64_t{1} << 32)
      fail("an extent from 0 to 2^32");
    if (__builtin_mul_overflow(variable.count, extent, &variable.count) || variable.count > maxElements)
      fail("a variable that fits memory");
    expect(']');
  }
  variable.count *= vector;
  variable.align = align ? align : vector * std::max(1, bytesOf(variable.type));
  if (accept('='))
    parseInitialiser(variable);
  return variable;
}

void Parser::parseInitialiser(Variable &variable, int depth) {
  if (accept('{')) {
    if (depth == maxExtents)
      fail(fmt::format("braces at most {} deep", maxExtents));
    while (!accept('}')) {
      if (token().is('{'))
        parseInitialiser(variable, depth + 1);
      else
        variable.values.push_back(tokens.initialiser(module));
      if (!token().is('}'))
        expect(',');
    }
    return;
  }
  variable.values.push_back(tokens.initialiser(module));
}

// --- Functions -----------------------------------------------------------------------------------------------------

void Parser::parseParameters(Function &function, Scopes &scopes, std::vector<int> &list) {
  expect('(');
  while (!accept(')')) {
    if (token().isSuffix("reg")) {
      advance();
      const std::optional<Type> type = typeNamed(token().text);
      advance();
      if (!type || token().kind != Token::Kind::word || !scopes.addRegister(token().text, *type))
        fail("a register's type and a new name");
      function.registerParameters = true;
      list.push_back(static_cast<int>(function.registers.size()) - 1);
      advance();
    } else {
      if (!token().isSuffix("param"))
        fail("'.param' or '.reg'");
      advance();
      list.push_back(static_cast<int>(function.variables.size()));
      if (!scopes.addVariable(parseVariable(Space::param, true)))
        fail("a new name");
    }
    if (!token().is(')'))
      expect(',');
  }
}

void Parser::parsePerformance(Function &function) {
  while (token().kind == Token::Kind::suffix) {
    const std::string_view name = token().text;
    advance();
    if (name == "noreturn" || name == "explicitcluster" || name == "abi_preserve" || name == "abi_preserve_control")
      continue;
    if (name == "pragma") {
      passPragma();
      continue;
    }
    std::array<int, 3> extents = {1, 1, 1};
    size_t count = 0;
    do {
      const int64_t extent = integer("a number");
      if (extent < 0 || extent > 1 << 20 || count == extents.size())
        fail("one to three numbers up to 2^20");
      extents[count++] = static_cast<int>(extent);
    } while (accept(','));
    if (name == "maxntid" || name == "reqntid") {
      function.block = extents;
      function.blockIsFixed = name == "reqntid";
    } else if (name == "maxnreg") {
      function.maxRegisters = extents[0];
    } else if (name == "reqnctapercluster") {
      function.cluster = extents;
    } else if (name != "minnctapersm" && name != "maxclusterrank" && name != "maxnctapersm")
      fail("a performance directive");
  }
}

void Parser::parseFunction(bool isEntry, bool isExternal) {
  Function function;
  function.isEntry = isEntry;
  function.place.line = token().line;
  place = {};
  Scopes scopes(function);
  if (token().is('('))
    parseParameters(function, scopes, function.results);
  if (token().kind != Token::Kind::word)
    fail("a function's name");
  function.name = token().text;
  advance();
  if (token().is('('))
    parseParameters(function, scopes, function.parameters);
  parsePerformance(function);
  // Declared before its body, so that it can call itself.
  int index = module.find(function.name);
  if (index < 0) {
    index = static_cast<int>(module.functions.size());
    module.functions.emplace_back();
    module.functions.back().name = function.name;
  } else if (module.functions[static_cast<size_t>(index)].hasBody && !accept(';')) {
    fail(fmt::format("one function '{}'", function.name));
  }
  if (accept(';') || isExternal) {
    if (!module.functions[static_cast<size_t>(index)].hasBody)
      module.functions[static_cast<size_t>(index)] = std::move(function);
    return;
  }
  function.hasBody = true;
  expect('{');
  parseBody(function, scopes);
  if (const std::string_view label = scopes.resolveLabels(); !label.empty())
    throw Error(fmt::format("PTX line {}: expected a label '{}' in function '{}', but there is none",
                            function.place.line, label, function.name));
  module.functions[static_cast<size_t>(index)] = std::move(function);
}

/// Skips a function with any content; returns its name, or none if this is not a function.
std::string_view Parser::passFunction() {
  if (accept('('))
    while (!accept(')'))
      tokens.advanceWithin("')'");
  const std::string_view name = token().kind == Token::Kind::word ? token().text : std::string_view();
  while (!token().is('{') && !token().is(';'))
    tokens.advanceWithin("a function's body");
  if (token().is('{'))
    tokens.skipBraces();
  else
    advance();
  return name;
}

/// A function that cannot be parsed is an error only if it is used.
void Parser::parseFunctionOrPass(bool isEntry, bool isExternal) {
  const Tokens begin = tokens;
  try {
    parseFunction(isEntry, isExternal);
  } catch (const Error &error) {
    tokens = begin;
    Function function;
    function.isEntry = isEntry;
    function.fault = error.what();
    try {
      function.name = passFunction();
    } catch (const Error &) {
      throw error;
    }
    const int index = module.find(function.name);
    if (function.name.empty() || (index >= 0 && module.functions[static_cast<size_t>(index)].hasBody))
      throw;
    if (index < 0)
      module.functions.push_back(std::move(function));
    else
      module.functions[static_cast<size_t>(index)] = std::move(function);
  }
}

// --- Body ----------------------------------------------------------------------------------------------------------

void Parser::parseBody(Function &function, Scopes &scopes) {
  for (int depth = 1; depth > 0;) {
    if (accept('{')) {
      if (++depth > 256)
        fail("braces at most 256 deep");
      scopes.open();
    } else if (accept('}')) {
      --depth;
      scopes.close();
    } else if (token().kind == Token::Kind::suffix) {
      parseBodyDirective(scopes);
    } else if (token().kind == Token::Kind::word || token().is('@')) {
      parseInstruction(function, scopes);
    } else if (!accept(';')) {
      fail("an instruction");
    }
  }
}

void Parser::parseBodyDirective(Scopes &scopes) {
  const std::string_view name = token().text;
  advance();
  if (name == "reg")
    return parseRegisters(scopes);
  if (name == "loc")
    return parseLoc();
  if (name == "pragma")
    return passPragma();
  const std::optional<Space> space = spaceNamed(name);
  if (!space)
    fail("a directive of a function's body");
  do {
    Variable variable = parseVariable(*space, false);
    // Shared variables exist for the whole module, but the name is in scope in these braces only.
    if (!scopes.addVariable(std::move(variable)))
      fail("a new name");
  } while (accept(','));
  expect(';');
}

void Parser::parseRegisters(Scopes &scopes) {
  std::optional<Type> type;
  while (token().kind == Token::Kind::suffix) {
    type = typeNamed(token().text);
    if (!type)
      fail("a register's type");
    advance();
  }
  if (!type)
    fail("a register's type");
  do {
    const std::string_view name = token().text;
    if (token().kind != Token::Kind::word)
      fail("a register's name");
    advance();
    if (accept('<')) {
      const int64_t count = integer("a number of registers");
      expect('>');
      if (count < 0 || !scopes.addRegisters(name, count, *type))
        fail(fmt::format("new registers instead of '{}'", name));
    } else if (!scopes.addRegister(name, *type)) {
      fail(fmt::format("a new register instead of '{}'", name));
    }
  } while (accept(','));
  expect(';');
}

void Parser::parseLoc() {
  const int file = static_cast<int>(integer("a file's number")), line = static_cast<int>(integer("a line"));
  if (line > 0) { // line 0: LLVM merged instructions of several lines, so the line before is the nearest
    place.file = file;
    place.sourceLine = line;
  }
  integer("a column");
  while (accept(',')) { // function_name LABEL + N, inlined_at FILE LINE COLUMN
    advance();
    while (token().kind == Token::Kind::word || token().kind == Token::Kind::integer || token().is('+'))
      if (token().line == tokens.previousLine())
        advance();
      else
        break;
  }
}

/// Names with commas, up to a semicolon, by the number that `find` gives them.
template <class Find> std::vector<int> Parser::parseList(Find find) {
  std::vector<int> list;
  do {
    list.push_back(find(token().text));
    advance();
  } while (accept(','));
  expect(';');
  return list;
}

/// `(.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16])`, with or without results and parameters.
Prototype Parser::parsePrototype() {
  Function like; // names are ignored
  const auto list = [&](std::vector<Variable> &variables) {
    like.variables.clear();
    Scopes scopes(like);
    std::vector<int> indices;
    parseParameters(like, scopes, indices);
    variables = std::move(like.variables);
  };
  Prototype prototype;
  if (token().is('('))
    list(prototype.results);
  if (token().kind != Token::Kind::word)
    fail("'_'");
  advance();
  if (token().is('('))
    list(prototype.parameters);
  parsePerformance(like);
  expect(';');
  prototype.registerParameters = like.registerParameters;
  return prototype;
}

void Parser::parseInstruction(Function &function, Scopes &scopes) {
  Instruction instruction;
  instruction.place = place;
  if (accept('@')) {
    instruction.guardNegated = accept('!');
    const Operand guard = scopes.find(token().text);
    if (guard.kind != Operand::Kind::reg || function.registers[static_cast<size_t>(guard.index)].type != Type::pred)
      fail("a predicate");
    instruction.guard = guard.index;
    advance();
  }
  if (token().kind != Token::Kind::word)
    fail("an instruction");
  const std::string_view name = token().text;
  instruction.place.line = token().line;
  advance();
  if (instruction.guard < 0 && accept(':')) {
    if (token().isSuffix("branchtargets")) {
      advance();
      return scopes.addBranchTargets(name, parseList([&](std::string_view label) { return scopes.label(label); }));
    }
    if (token().isSuffix("calltargets")) {
      advance();
      return scopes.addCallTargets(name, parseList([&](std::string_view function) {
                                     const int index = module.find(function);
                                     if (index < 0)
                                       fail("a function that stands before");
                                     return index;
                                   }));
    }
    if (token().isSuffix("callprototype")) {
      advance();
      return scopes.addPrototype(name, parsePrototype());
    }
    if (!scopes.placeLabel(name))
      fail(fmt::format("one label '{}' in these braces", name));
    return;
  }
  instruction.opcode = name;
  instruction.firstModifier = static_cast<uint32_t>(function.modifiers.size());
  for (; token().kind == Token::Kind::suffix; advance())
    function.modifiers.push_back(token().text);
  instruction.modifierCount = static_cast<uint32_t>(function.modifiers.size()) - instruction.firstModifier;
  OperandParser operands(module, function, scopes, tokens, isBranch(name));
  operands.parse(instruction);
  expect(';');
  function.instructions.push_back(instruction);
}

Module parse(std::string text) {
  Module module;
  module.text = std::make_unique<const std::string>(std::move(text));
  Parser(module).parseModule();
  return module;
}

} // namespace kiln::ptx
