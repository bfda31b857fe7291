// The errors of verifiers and passes, as tables of text (tile.errors explains their form). The text of an operation
// stands in a function, whose arguments are the names that the text uses and does not define. Their types are those
// that the operation's own text gives them: the first parse has arguments of type `none`, and the parser's error says
// which type it expected.

#include "lowering/Driver.h"
#include "test/paths.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>

namespace kiln::test {

/// The errors, each with its line in the text.
using Errors = std::vector<std::pair<std::string, int>>;

static int lineOf(mlir::Location at) {
  const auto place = at->findInstanceOf<mlir::FileLineColLoc>();
  return place ? static_cast<int>(place.getLine()) : 0;
}

static Errors errorsOf(const std::string &text, const std::string &passes) {
  static const mlir::DialectRegistry registry = [] {
    mlir::DialectRegistry dialects;
    mlir::registerAllDialects(dialects);
    lowering::registerDialects(dialects);
    lowering::registerPasses();
    return dialects;
  }();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  Errors errors;
  const mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
      errors.emplace_back(diagnostic.str(), lineOf(diagnostic.getLocation()));
  });
  const mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  mlir::PassManager manager(&context);
  if (module && succeeded(mlir::parsePassPipeline(passes, manager)))
    EXPECT_NE(passes.empty(), failed(manager.run(*module)));
  return errors;
}

/// Whether the text is of a function, a module or a global constant.
static bool isWhole(const std::string &text) {
  return text.starts_with("func.func") || text.starts_with("module") || text.starts_with("llvm.mlir.global");
}

/// The errors of an operation with operands of the types that its text names.
static Errors errorsOf(const std::string &aliases, const std::string &text, const std::string &passes) {
  if (isWhole(text))
    return errorsOf(aliases + text, passes);
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
    const std::string attributes = passes.empty() ? "" : "attributes {tile.kernel} ";
    const Errors errors =
        errorsOf(aliases + "func.func @case(" + arguments + ") " + attributes + "{\n" + text + "return\n}\n", passes);
    std::smatch found;
    if (errors.size() != 1 || !std::regex_match(errors[0].first, found, typed))
      return errors;
    types[found[1]] = found[2];
  }
}

/// Runs each case of a table.
static void expectErrors(const std::string &file) {
  static const std::string error = "    error: ", pipeline = "passes: ", rest = "…";
  static const std::regex alias("^[#!]\\w+ = .*");
  std::ifstream in(sourcePath(file));
  std::string aliases, text, passes;
  int number = 0, cases = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line.starts_with("//"))
      continue;
    if (line.starts_with(pipeline)) {
      passes = line.substr(pipeline.size());
      continue;
    }
    if (!line.starts_with(error)) {
      (std::regex_match(line, alias) ? aliases : text) += line + "\n";
      continue;
    }
    SCOPED_TRACE(file + ":" + std::to_string(number) + ":\n" + text);
    const Errors errors = errorsOf(aliases, text, passes);
    const std::string want = line.substr(error.size());
    EXPECT_EQ(errors.size(), 1u);
    for (const auto &[message, at] : errors) // not at the function around an operation
      EXPECT_GT(at, std::ranges::count(aliases, '\n') + (isWhole(text) ? 0 : 1)) << message;
    std::string got = errors.empty() ? "" : errors[0].first;
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
TEST(VerifierTest, Passes) { expectErrors("test/lowering/passes.errors"); }

} // namespace kiln::test
