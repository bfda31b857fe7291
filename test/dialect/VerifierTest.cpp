// The errors of verifiers, as tables of text (tile.errors explains their form). The text of an operation stands in a
// function, whose arguments are the names that the text uses and does not define. Their types are those that the
// operation's own text gives them: the first parse has arguments of type `none`, and the parser's error says which type
// it expected.

#include "lowering/Driver.h"
#include "test/paths.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>

namespace kiln::test {

static std::vector<std::string> errorsOf(const std::string &text) {
  static const mlir::DialectRegistry registry = [] {
    mlir::DialectRegistry dialects;
    mlir::registerAllDialects(dialects);
    lowering::registerDialects(dialects);
    return dialects;
  }();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::vector<std::string> errors;
  const mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
      errors.push_back(diagnostic.str());
  });
  mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  return errors;
}

/// The errors of an operation with operands of the types that its text names.
static std::vector<std::string> errorsOf(const std::string &aliases, const std::string &text) {
  if (text.starts_with("func.func"))
    return errorsOf(aliases + text);
  static const std::regex name("%([a-z]\\w*)(?!\\w|:| =)"),
      typed("use of value '%(\\w+)' expects different type than prior uses: '(.*)' vs 'none'");
  std::map<std::string, std::string> types;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it)
    if (!std::regex_search(text, std::regex("%" + it->str(1) + "(:| =)")))
      types[it->str(1)] = "none";
  while (true) {
    std::string arguments;
    for (const auto &[argument, type] : types)
      arguments += (arguments.empty() ? "%" : ", %") + argument + ": " + type;
    const std::vector<std::string> errors =
        errorsOf(aliases + "func.func @case(" + arguments + ") {\n" + text + "return\n}\n");
    std::smatch found;
    if (errors.size() != 1 || !std::regex_match(errors[0], found, typed))
      return errors;
    types[found[1]] = found[2];
  }
}

/// Runs each case of a table.
static void expectErrors(const std::string &file) {
  static const std::string error = "    error: ", rest = "…";
  static const std::regex alias("^[#!]\\w+ = .*");
  std::ifstream in(sourcePath(file));
  std::string aliases, text;
  int number = 0, cases = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.starts_with("//"))
      continue;
    if (!line.starts_with(error)) {
      (std::regex_match(line, alias) ? aliases : text) += line + "\n";
      continue;
    }
    SCOPED_TRACE(file + ":" + std::to_string(number) + ":\n" + text);
    const std::vector<std::string> errors = errorsOf(aliases, text);
    const std::string want = line.substr(error.size());
    EXPECT_EQ(errors.size(), 1u);
    std::string got = errors.empty() ? "" : errors[0];
    if (want.ends_with(rest))
      got = got.substr(0, want.size() - rest.size()) + rest;
    EXPECT_EQ(got, want);
    text.clear();
    ++cases;
  }
  EXPECT_EQ(text, "") << "a case without an error";
  EXPECT_GT(cases, 0);
}

TEST(VerifierTest, Tile) { expectErrors("test/dialect/tile.errors"); }
TEST(VerifierTest, Simt) { expectErrors("test/dialect/simt.errors"); }
TEST(VerifierTest, CpuAttributes) { expectErrors("test/lowering/cpu/attributes.errors"); }

} // namespace kiln::test
