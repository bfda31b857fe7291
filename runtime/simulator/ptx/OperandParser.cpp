// Operands: registers, special registers, numbers, addresses, vectors, lists of a call, labels.

#include "runtime/simulator/ptx/OperandParser.h"

#include "dialect/dsl/Types.h"
#include "runtime/simulator/ptx/Parser.h"

#include <array>
#include <charconv>
#include <fmt/format.h>
#include <tuple>

namespace kiln::ptx {

// --- Names ----------------------------------------------------------------------------------------------------------
//
// A chain of tables from the innermost braces outwards. `%r<10>` is one entry `%r`, whose registers are created at
// first use, so that a declaration of a million registers costs nothing.

void Scopes::open() {
  scopes.push_back({current, {}, {}, {}});
  current = static_cast<int>(scopes.size()) - 1;
}

int Scopes::makeRegister(std::string_view name, Type type, int number) {
  function.registers.push_back({name, type, number});
  return static_cast<int>(function.registers.size()) - 1;
}

bool Scopes::addRegister(std::string_view name, Type type) {
  if (name == "_") { // no operand can refer to it
    makeRegister(name, type, -1);
    return true;
  }
  const auto [at, isNew] = top().names.try_emplace(name, Name{Name::Kind::reg, -1, 0, type});
  if (isNew)
    at->second.index = makeRegister(name, type, -1);
  return isNew;
}

bool Scopes::addRegisters(std::string_view prefix, int64_t count, Type type) {
  return top().ranges.try_emplace(prefix, Name{Name::Kind::range, -1, count, type}).second;
}

bool Scopes::addVariable(Variable variable) {
  const int index = static_cast<int>(function.variables.size());
  if (variable.name != "_" &&
      !top().names.try_emplace(variable.name, Name{Name::Kind::variable, index, 0, variable.type}).second)
    return false;
  function.variables.push_back(std::move(variable));
  return true;
}

Operand Scopes::find(std::string_view name) {
  size_t stem = name.size();
  while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
    --stem;
  for (int scope = current; scope >= 0; scope = scopes[static_cast<size_t>(scope)].parent) {
    auto &[parent, names, ranges, labels] = scopes[static_cast<size_t>(scope)];
    auto at = names.find(name);
    if (at != names.end()) {
      Operand operand;
      operand.kind = at->second.kind == Name::Kind::reg ? Operand::Kind::reg : Operand::Kind::variable;
      operand.isLocal = true;
      operand.index = at->second.index;
      return operand;
    }
    // Creates a member of a range. Every split of the trailing digits may match a range: `%a1<3>` has `%a12`.
    for (size_t split = stem; split < name.size(); ++split) {
      at = ranges.find(name.substr(0, split));
      if (at == ranges.end() || (name[split] == '0' && split + 1 < name.size()))
        continue;
      int64_t number = 0;
      const auto [stop, failure] = std::from_chars(name.data() + split, name.data() + name.size(), number);
      if (failure != std::errc() || number >= at->second.count)
        continue;
      Operand operand;
      operand.kind = Operand::Kind::reg;
      operand.isLocal = true;
      operand.index = makeRegister(name, at->second.type, static_cast<int>(number));
      names.emplace(name, Name{Name::Kind::reg, operand.index, 0, at->second.type});
      return operand;
    }
  }
  return {};
}

int Scopes::label(std::string_view name) {
  const auto [at, isNew] = top().labels.try_emplace(name, static_cast<int>(function.labels.size()));
  if (isNew)
    function.labels.push_back(-1);
  return at->second;
}

bool Scopes::placeLabel(std::string_view name) {
  int &place = function.labels[static_cast<size_t>(label(name))];
  if (place >= 0)
    return false;
  place = static_cast<int>(function.instructions.size());
  return true;
}

void Scopes::addBranchTargets(std::string_view name, std::vector<int> labels) {
  targets[name] = {Operand::Kind::list, static_cast<int>(function.branchTargets.size())};
  function.branchTargets.push_back(std::move(labels));
}

void Scopes::addCallTargets(std::string_view name, std::vector<int> functions) {
  targets[name] = {Operand::Kind::targets, static_cast<int>(function.callTargets.size())};
  function.callTargets.push_back(std::move(functions));
}

void Scopes::addPrototype(std::string_view name, Prototype prototype) {
  targets[name] = {Operand::Kind::prototype, static_cast<int>(function.prototypes.size())};
  function.prototypes.push_back(std::move(prototype));
}

Operand Scopes::findTargets(std::string_view name) const {
  Operand operand;
  if (const auto at = targets.find(name); at != targets.end())
    std::tie(operand.kind, operand.index) = at->second;
  return operand;
}

std::string_view Scopes::resolveLabels() {
  for (const Scope &scope : scopes)
    for (const auto &[name, index] : scope.labels) {
      int &place = function.labels[static_cast<size_t>(index)];
      for (int outer = scope.parent; place < 0 && outer >= 0; outer = scopes[static_cast<size_t>(outer)].parent)
        if (const auto at = scopes[static_cast<size_t>(outer)].labels.find(name);
            at != scopes[static_cast<size_t>(outer)].labels.end())
          place = function.labels[static_cast<size_t>(at->second)];
      if (place < 0)
        return name;
    }
  return {};
}

// --- Tokens --------------------------------------------------------------------------------------------------------

void Tokens::fail(const std::string &expected) const {
  throw Error(fmt::format("PTX line {}: expected {}, but got {}", token.line, expected,
                          token.kind == Token::Kind::end ? "the end of the text" : fmt::format("'{}'", token.text)));
}

void Tokens::expect(char mark) {
  if (!accept(mark))
    fail(fmt::format("'{}'", mark));
}

void Tokens::skipBraces() {
  if (!token.is('{'))
    fail("'{'");
  lexer.skipBraces();
  advance();
}

Operand Tokens::number() {
  const bool negative = accept('-');
  return number(negative);
}

Operand Tokens::number(bool negative) {
  Operand operand;
  operand.bits = token.bits;
  switch (token.kind) {
  case Token::Kind::integer:
    operand.kind = Operand::Kind::integer;
    operand.bits = negative ? 0 - token.bits : token.bits;
    break;
  case Token::Kind::single:
    operand.kind = Operand::Kind::single;
    operand.bits ^= negative ? uint64_t{1} << 31 : 0;
    break;
  case Token::Kind::real:
    operand.kind = Operand::Kind::real;
    operand.bits ^= negative ? uint64_t{1} << 63 : 0;
    break;
  default:
    fail("a number");
  }
  advance();
  return operand;
}

Initialiser Tokens::initialiser(const Module &module) {
  Initialiser value;
  if (token.kind != Token::Kind::word) {
    value.bits = number().bits;
    return value;
  }
  const bool generic = token.isWord("generic");
  if (generic) {
    advance();
    expect('(');
  }
  value.variable = module.findVariable(token.text);
  if (value.variable < 0)
    value.function = module.find(token.text);
  if (value.variable < 0 && value.function < 0)
    fail("a variable or function that stands before");
  advance();
  if (generic)
    expect(')');
  if (accept('+'))
    value.bits = number().bits;
  return value;
}

// --- Special registers ---------------------------------------------------------------------------------------------

/// Their names in the order of Special.
static constexpr std::string_view specialNames =
    "tid.x tid.y tid.z ntid.x ntid.y ntid.z ctaid.x ctaid.y ctaid.z nctaid.x nctaid.y nctaid.z laneid warpid nwarpid "
    "smid nsmid gridid cluster_ctaid.x cluster_ctaid.y cluster_ctaid.z cluster_nctaid.x cluster_nctaid.y "
    "cluster_nctaid.z clusterid.x clusterid.y clusterid.z nclusterid.x nclusterid.y nclusterid.z cluster_ctarank "
    "cluster_nctarank lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt clock clock_hi clock64 globaltimer "
    "globaltimer_lo globaltimer_hi dynamic_smem_size total_smem_size reserved_smem_offset_0 reserved_smem_offset_1 "
    "reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap aggr_smem_size is_explicit_cluster "
    "current_graph_exec envreg<32> WARP_SZ ";

/// The number of the special register `%name`, or `%name.part`; −1 if there is none.
static int specialNamed(std::string_view name, std::string_view part) {
  if (name.starts_with("envreg") && part.empty()) {
    const std::string_view digits = name.substr(6);
    unsigned number = 0;
    const auto [stop, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure == std::errc() && stop == digits.data() + digits.size() && number < 32)
      return static_cast<int>(Special::envreg);
  }
  const std::string full = std::string(name) + (part.empty() ? "" : ".") + std::string(part);
  int number = 0;
  for (size_t at = 0; at < specialNames.size(); at = specialNames.find(' ', at) + 1, ++number)
    if (specialNames.substr(at, specialNames.find(' ', at) - at) == full)
      return number;
  return -1;
}

// --- Operands ------------------------------------------------------------------------------------------------------

bool isBranch(std::string_view opcode) { return opcode == "bra" || opcode == "brx"; }

void OperandParser::parse(Instruction &instruction) {
  std::vector<Operand> operands;
  while (!tokens.current().is(';')) {
    operands.push_back(operand());
    if (tokens.accept('|')) { // two results: `%p|%q`, `%r|%p`
      Operand pair;
      pair.kind = Operand::Kind::pair;
      finish(pair, {operands.back(), operand()});
      operands.back() = pair;
    }
    if (!tokens.current().is(';'))
      tokens.expect(',');
  }
  instruction.first = static_cast<uint32_t>(function.pool.size());
  instruction.count = static_cast<uint32_t>(operands.size());
  function.pool.insert(function.pool.end(), operands.begin(), operands.end());
}

void OperandParser::finish(Operand &group, const std::vector<Operand> &elements) {
  group.first = static_cast<uint32_t>(function.pool.size());
  group.count = static_cast<uint32_t>(elements.size());
  function.pool.insert(function.pool.end(), elements.begin(), elements.end());
}

Operand OperandParser::group(char close, Operand::Kind kind) {
  if (++depth > 8)
    tokens.fail("groups at most 8 deep");
  std::vector<Operand> elements;
  while (!tokens.accept(close)) {
    elements.push_back(operand());
    if (!tokens.current().is(close))
      tokens.expect(',');
  }
  --depth;
  Operand group;
  group.kind = kind;
  finish(group, elements);
  return group;
}

Operand OperandParser::operand() {
  if (tokens.accept('{'))
    return group('}', Operand::Kind::vector);
  if (tokens.accept('('))
    return group(')', Operand::Kind::list);
  if (tokens.accept('['))
    return address();
  if (tokens.accept('!')) {
    Operand operand = name();
    if (operand.kind != Operand::Kind::reg)
      tokens.fail("a predicate after '!'");
    operand.negated = true;
    return operand;
  }
  if (tokens.current().kind == Token::Kind::word)
    return name();
  const bool isNegative = tokens.accept('-');
  if (isNegative && tokens.current().kind == Token::Kind::word)
    tokens.fail("a number after '-'");
  return tokens.number(isNegative);
}

Operand OperandParser::name() {
  const std::string_view name = tokens.current().text;
  if (tokens.current().kind != Token::Kind::word)
    tokens.fail("an operand");
  Operand operand;
  if (name == "_") {
    tokens.advance();
    operand.kind = Operand::Kind::sink;
    return operand;
  }
  operand = scopes.find(name);
  if (operand.kind == Operand::Kind::none && (name.starts_with('%') || name == "WARP_SZ")) {
    tokens.advance();
    std::string_view part;
    if (tokens.current().kind == Token::Kind::suffix) {
      part = tokens.current().text;
      tokens.advance();
    }
    operand.kind = Operand::Kind::special;
    operand.index = specialNamed(name.substr(name.starts_with('%')), part);
    if (operand.index < 0)
      throw Error(fmt::format("PTX line {}: expected a register, but '{}{}{}' is declared nowhere",
                              tokens.previousLine(), name, part.empty() ? "" : ".", part));
    return operand;
  }
  if (operand.kind == Operand::Kind::none)
    if (const int variable = module.findVariable(name); variable >= 0) {
      operand.kind = Operand::Kind::variable;
      operand.index = variable;
    }
  if (operand.kind == Operand::Kind::none) {
    if (const Operand list = scopes.findTargets(name); list.kind != Operand::Kind::none) {
      operand = list;
    } else if (branch) {
      operand.kind = Operand::Kind::label;
      operand.index = scopes.label(name);
    } else if (const int index = module.find(name); index >= 0) {
      operand.kind = Operand::Kind::function;
      operand.index = index;
    } else {
      tokens.fail("an operand that is declared");
    }
  }
  tokens.advance();
  if (operand.kind == Operand::Kind::variable && tokens.accept('+'))
    operand.bits = tokens.number().bits;
  if (operand.kind == Operand::Kind::reg && tokens.current().kind == Token::Kind::suffix) {
    operand.selector = tokens.current().text;
    tokens.advance();
  }
  return operand;
}

Operand OperandParser::address() {
  Operand address;
  address.kind = Operand::Kind::address;
  if (tokens.current().kind == Token::Kind::word) {
    const Operand base = name();
    if ((base.kind != Operand::Kind::reg && base.kind != Operand::Kind::variable) || !base.selector.empty())
      tokens.fail("an address");
    address.base = base.kind;
    address.index = base.index;
    address.isLocal = base.isLocal;
    address.bits = base.bits;
  } else {
    address.base = Operand::Kind::integer;
    address.bits = tokens.number().bits;
  }
  if (tokens.accept('+'))
    address.bits += tokens.number().bits;
  else if (tokens.current().is('-'))
    address.bits += tokens.number().bits;
  if (tokens.accept(',')) { // coordinates of a tensor
    tokens.expect('{');
    const Operand coordinates = group('}', Operand::Kind::vector);
    address.first = coordinates.first;
    address.count = coordinates.count;
  }
  tokens.expect(']');
  return address;
}

} // namespace kiln::ptx
