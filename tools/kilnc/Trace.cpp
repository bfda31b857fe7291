// Reads the flag --args, and traces a kernel, with diagnostics as an error.

#include "tools/kilnc/Trace.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/Diagnostics.h"
#include "lowering/Driver.h"
#include "runtime/Facts.h"
#include "runtime/Streams.h"
#include "tools/kilnc/Arguments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <fmt/format.h>

#include <numeric>

namespace kiln::tools {

// --- The flag --args ------------------------------------------------------------------------------------------------

/// The value of an unknown extent during tracing, in case the kernel computes with it before the error is reported.
static constexpr int64_t standIn = 1024;

static constexpr const char *form = "such as f32[?x64] or i64";

/// The facts of one argument, `f32[?x64]`; `unknown` receives the dimensions given as `?`.
static ArgFacts parseOne(llvm::StringRef text, std::vector<int> &unknown) {
  const auto wrong = [&](const std::string &expected) {
    return Error(fmt::format("expected {} in --args, but got '{}'", expected, text.str()));
  };
  ArgFacts facts;
  const size_t bracket = text.find('[');
  facts.isView = bracket != llvm::StringRef::npos;
  const std::string type = text.substr(0, bracket).trim().str();
  if (type.empty())
    throw wrong(fmt::format("an argument {}", form));
  facts.type = typeNamed(type);
  if (!facts.isView)
    return facts;
  llvm::StringRef list = text.substr(bracket + 1);
  if (!list.consume_back("]"))
    throw wrong("a closing ']', and 'x' between extents,");
  llvm::SmallVector<llvm::StringRef> extents;
  list.split(extents, 'x');
  for (const llvm::StringRef extent : extents) {
    int64_t value = standIn;
    if (extent.trim() == "?")
      unknown.push_back(static_cast<int>(facts.extents.size()));
    else if (extent.trim().getAsInteger(10, value) || value < 0)
      throw wrong("extents that are '?' or numbers from 0, with 'x' between them,");
    facts.extents.push_back(value);
  }
  int64_t bytes = bytesOf(facts.type);
  for (const int64_t extent : facts.extents)
    if (llvm::MulOverflow(bytes, extent, bytes))
      throw wrong("extents whose product fits memory");
  return facts;
}

/// The facts, of these kinds, of dense, aligned memory with these extents.
static void setLayout(ArgFacts &facts, const std::vector<int> &unknown, const lowering::FactKinds &kinds) {
  facts.alignment = kinds.alignment ? 64 : 1;
  facts.stridesBy16 = kinds.stridesBy16;
  const int last = static_cast<int>(facts.extents.size()) - 1;
  const auto isKnown = [&](int dim) { return std::find(unknown.begin(), unknown.end(), dim) == unknown.end(); };
  facts.extentBy16 = kinds.extentBy16 && isKnown(last) && facts.extents[last] % 16 == 0;
  std::vector<int64_t> strides(facts.extents.size(), 1);
  int64_t factor = 1; // of the stride, and of 16, whatever the unknown extents are
  for (int i = last; i > 0; --i) {
    strides[i - 1] = strides[i] * facts.extents[i];
    if (isKnown(i))
      factor = std::gcd<int64_t>(16, factor * std::gcd<int64_t>(16, facts.extents[i]));
    facts.stridesBy16 &= factor == 16;
  }
  facts.fits32 = kinds.fits32 && fits32(facts.extents, strides, bytesOf(facts.type));
}

/// An example of an argument with the rank and type in its registration: `(M, N) f32` has rank two.
static std::string exampleOf(const Kernel::Parameter &parameter) {
  llvm::StringRef about = parameter.about;
  size_t rank = 1;
  if (about.consume_front("(")) {
    rank = about.take_until([](char c) { return c == ')'; }).count(',') + 1;
    about = about.drop_until([](char c) { return c == ')'; }).drop_front().ltrim();
  }
  const llvm::StringRef word = about.take_while([](char c) { return llvm::isAlnum(c); });
  const auto type = findType(&TypeInfo::spelling, word);
  if (!parameter.isView())
    return nameOf(type.value_or(i64));
  std::string extents = "?";
  for (size_t axis = 1; axis < rank; ++axis)
    extents += "x?";
  return fmt::format("{}[{}]", nameOf(type.value_or(f32)), extents);
}

namespace {
/// Arguments as the flag spells them.
struct ArgumentList {
  Specialisation facts;
  std::set<std::pair<int, int>> unknown; // (argument, dimension) spelt `?`
};
} // namespace

/// Throws Error unless the kernel has these parameters.
static void check(const Kernel &kernel, const std::vector<ArgFacts> &args) {
  std::string wanted, example;
  for (const Kernel::Parameter &parameter : kernel.parameters) {
    const char *kind = parameter.isView() ? "view" : "scalar";
    const std::string name = parameter.name.empty() ? kind : fmt::format("{} {}", kind, parameter.name);
    wanted += (wanted.empty() ? "" : ", ") + name;
    example += (example.empty() ? "" : ", ") + exampleOf(parameter);
  }
  if (args.size() != kernel.parameters.size())
    throw Error(fmt::format("kernel '{}': expected {} arguments ({}) in --args, such as --args='{}', but got {}",
                            kernel.name, kernel.parameters.size(), wanted, example, args.size()));
  for (size_t i = 0; i < args.size(); ++i) {
    const bool view = kernel.parameters[i].isView();
    if (args[i].isView != view)
      throw Error(fmt::format("kernel '{}': expected {} in --args to be a {}, such as {}, but got a {}", kernel.name,
                              kernel.called(i), view ? "view" : "scalar", exampleOf(kernel.parameters[i]),
                              view ? "scalar" : "view"));
  }
}

/// The named extents that are one number, or `?`, in all arguments.
static std::vector<Kernel::NamedExtent> equalExtents(const Kernel &kernel, const ArgumentList &arguments) {
  const auto spelt = [&](const std::pair<int, int> &extent) -> std::optional<int64_t> {
    const Shape &extents = arguments.facts.args[extent.first].extents;
    if (extent.second >= std::ssize(extents))
      return {};
    return arguments.unknown.count(extent) ? -1 : extents[extent.second];
  };
  std::vector<Kernel::NamedExtent> equal;
  for (const Kernel::NamedExtent &extents : kernel.namedExtents)
    if (const auto first = spelt(extents.front());
        first && std::all_of(extents.begin(), extents.end(), [&](const auto &each) { return spelt(each) == first; }))
      equal.push_back(extents);
  return equal;
}

/// Reads the flag's text for a kernel. Throws Error with the part that is wrong, and unless the arguments are those of
/// the kernel. Facts of other kinds than these are left out.
static ArgumentList parse(const Kernel &kernel, const std::string &text, const lowering::FactKinds &kinds) {
  ArgumentList result;
  result.facts.warps = kinds.warps;
  result.facts.stages = kinds.stages;
  const std::vector<std::optional<std::string>> parts = argumentParts(kernel, text);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i])
      throw Error(fmt::format("kernel '{0}': expected a {1} for '{2}' in --args, such as {2}={3}, but got none",
                              kernel.name, kernel.parameters[i].isView() ? "view" : "scalar", kernel.parameters[i].name,
                              exampleOf(kernel.parameters[i])));
    std::vector<int> unknown;
    ArgFacts facts = parseOne(*parts[i], unknown);
    if (facts.isView)
      setLayout(facts, unknown, kinds);
    const int index = static_cast<int>(i);
    for (const int dimension : unknown)
      result.unknown.insert({index, dimension});
    for (int other = 0; other < index; ++other)
      if (facts.isView && result.facts.args[other].isView)
        result.facts.disjoint.insert({other, index});
    result.facts.args.push_back(std::move(facts));
  }
  check(kernel, result.facts.args);
  result.facts.equalExtents = equalExtents(kernel, result);
  return result;
}

// --- Tracing --------------------------------------------------------------------------------------------------------

std::unique_ptr<mlir::MLIRContext> createContext() {
  mlir::DialectRegistry registry;
  lowering::registerDialects(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadDialect<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                       mlir::func::FuncDialect, mlir::memref::MemRefDialect>();
  return context;
}

TracedForList traceKernel(mlir::MLIRContext &context, const Kernel &kernel, const std::string &args,
                          const std::string &config, const lowering::FactKinds &kinds) {
  ArgumentList arguments = parse(kernel, args, kinds);
  arguments.facts.checksAssumptions = kinds.checksAssumptions;
  const lowering::ErrorCollector errors(&context);
  Traced traced = trace(context, kernel, arguments.facts, config);
  for (const std::pair<int, int> &place : traced.staticExtents)
    if (arguments.unknown.count(place))
      throw Error(fmt::format("kernel '{}': expected a number for dimension {} of {} in --args, because the kernel "
                              "makes it static, but got '?'",
                              kernel.name, place.second, kernel.called(place.first)));
  if (!traced.module)
    throw Error(errors.text());
  say(errors.warnings());
  return {std::move(arguments.facts), std::move(traced)};
}

void sayWarnings(const lowering::Explanation &explanation, const std::string &config) {
  if (!explanation.warnings().empty())
    say(explanation.warnings() + (config.empty() ? "" : "note: the config is " + config + "\n"));
}

std::string warningsAbout(const Kernel &kernel, const std::vector<ArgFacts> &args, const std::string &config) {
  const std::unique_ptr<mlir::MLIRContext> context = createContext();
  const lowering::ErrorCollector errors(context.get());
  Specialisation facts;
  facts.args = args;
  trace(*context, kernel, facts, config);
  return errors.warnings();
}

} // namespace kiln::tools
