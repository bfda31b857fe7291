// Traces a kernel in a context of its own and prints the module.

#include "test/dsl/Tracing.h"

#include "dialect/tile/TileDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace kiln::testing {

std::unique_ptr<mlir::MLIRContext> makeContext() {
  auto context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
  context->loadDialect<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                       mlir::func::FuncDialect, mlir::memref::MemRefDialect>();
  return context;
}

ArgFacts view(Type type, Shape extents) {
  ArgFacts facts;
  facts.type = type;
  facts.extents = std::move(extents);
  return facts;
}

ArgFacts scalar(Type type) {
  ArgFacts facts;
  facts.isView = false;
  facts.type = type;
  return facts;
}

/// Traces a kernel, and passes the module to `show`. Without a module it returns the text of the first error.
template <class Show>
static std::string traced(const Kernel &kernel, const Specialisation &facts, const std::string &config, Show show) {
  auto context = makeContext();
  std::string firstError;
  mlir::ScopedDiagnosticHandler handler(context.get(), [&](mlir::Diagnostic &diagnostic) {
    if (firstError.empty())
      firstError = diagnostic.str();
  });
  Traced result = trace(*context, kernel, facts, config);
  return result.module ? show(*result.module) : firstError;
}

std::string moduleOf(const Kernel &kernel, const Specialisation &facts, const std::string &config) {
  return traced(kernel, facts, config, [](mlir::ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream out(text);
    module.print(out);
    return text;
  });
}

/// The program with each constant's number in place of its name: `dense<3>` for `%cst`.
static std::string withNumbers(llvm::StringRef program) {
  llvm::StringMap<llvm::StringRef> numbers;
  std::string text;
  while (!program.empty()) {
    const auto [line, rest] = program.split('\n');
    program = rest;
    if (const auto [name, number] = line.ltrim().split(" = arith.constant "); !number.empty()) {
      numbers[name] = number.contains(" : ") ? number.rsplit(" : ").first : number;
      continue;
    }
    for (llvm::StringRef left = line; !left.empty();) {
      text += left.take_until([](char c) { return c == '%'; });
      left = left.drop_until([](char c) { return c == '%'; });
      const llvm::StringRef word =
          left.drop_front(!left.empty()).take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '-'; });
      const llvm::StringRef name = left.take_front(!left.empty() + word.size());
      const auto found = numbers.find(name);
      text += found == numbers.end() ? name : found->second;
      left = left.drop_front(name.size());
    }
    text += '\n';
  }
  return text;
}

std::string programOf(const Kernel &kernel, const std::vector<ArgFacts> &args, const std::string &config) {
  return traced(kernel, {args, {}}, config, [](mlir::ModuleOp module) {
    mlir::PassManager passes(module.getContext());
    passes.addPass(mlir::createCanonicalizerPass());
    passes.addPass(mlir::createCSEPass());
    if (failed(passes.run(module)))
      return std::string("the passes failed");
    std::string text;
    llvm::raw_string_ostream out(text);
    mlir::func::FuncOp function = *module.getOps<mlir::func::FuncOp>().begin();
    for (mlir::Operation &op : function.getBody().front().without_terminator()) {
      op.print(out, mlir::OpPrintingFlags().useLocalScope());
      out << '\n';
    }
    return withNumbers(text);
  });
}

} // namespace kiln::testing
