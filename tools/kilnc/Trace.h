// Traces a kernel for the arguments that --args spells.

#pragma once

#include "dialect/dsl/Trace.h"
#include "lowering/Backend.h"

#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace kiln::tools {

/// A context that kernels are traced and compiled in.
std::unique_ptr<mlir::MLIRContext> createContext();

/// A traced kernel, and the facts that it was traced for.
struct TracedForList {
  Specialisation facts;
  Traced traced;
};

/// Traces `kernel` for the arguments `args`, as ArgumentList has them, and a config. Throws Error with the messages;
/// warnings go to stderr.
TracedForList traceKernel(mlir::MLIRContext &context, const Kernel &kernel, const std::string &args,
                          const std::string &config, const lowering::FactKinds &kinds);

/// The warnings of a trace, a line each; empty if the kernel does not trace, whose errors compiling reports.
std::string warningsAbout(const Kernel &kernel, const std::vector<ArgFacts> &args, const std::string &config);

} // namespace kiln::tools
