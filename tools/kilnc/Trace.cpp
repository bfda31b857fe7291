// Traces a kernel, with diagnostics as an error.

#include "tools/kilnc/Trace.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/Diagnostics.h"
#include "lowering/Driver.h"
#include "runtime/Streams.h"
#include "tools/kilnc/ArgumentList.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <fmt/format.h>

namespace kiln::tools {

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
  ArgumentList arguments = ArgumentList::parse(kernel, args, kinds);
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

std::string warningsAbout(const Kernel &kernel, const std::vector<ArgFacts> &args, const std::string &config) {
  const std::unique_ptr<mlir::MLIRContext> context = createContext();
  const lowering::ErrorCollector errors(context.get());
  Specialisation facts;
  facts.args = args;
  trace(*context, kernel, facts, config);
  return errors.warnings();
}

} // namespace kiln::tools
