// Traces a kernel for the arguments that --args spells without memory: the types and facts for which it is specialised.
//
//     --args='f32[?x64], bf16[768], i64'
//     --args='x=f32[?x64], bias=bf16[768], n=i64'      by the parameters' names, in any order
//
// `?` is an extent known only at launch. A number is the real extent; it is static only if the kernel reads it by
// View::extent. Tensors are assumed to be dense, 64-byte aligned and not to overlap, and their offsets to fit in 32
// bits.

#pragma once

#include "dialect/dsl/Trace.h"
#include "lowering/Backend.h"
#include "lowering/Sources.h"

#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <optional>
#include <vector>

namespace kiln::tools {

/// A context that kernels are traced and compiled in.
std::unique_ptr<mlir::MLIRContext> createContext();

/// A traced kernel, and the facts that it was traced for.
struct TracedForList {
  Specialisation facts;
  Traced traced;
};

/// Traces `kernel` for the arguments `args`, in the form above, and a config. Throws Error with the messages;
/// warnings go to stderr.
TracedForList traceKernel(mlir::MLIRContext &context, const Kernel &kernel, const std::string &args,
                          const std::string &config, const lowering::FactKinds &kinds);

/// Prints the warnings of a compilation, and below them the config that they are about.
void sayWarnings(const lowering::Explanation &explanation, const std::string &config);

/// The warnings of a trace, a line each; empty if the kernel does not trace, whose errors compiling reports.
std::string warningsAbout(const Kernel &kernel, const std::vector<ArgFacts> &args, const std::string &config);

// --- Uses of integers (IntegerUses.cpp) -----------------------------------------------------------------------------

/// The use of a view's integers.
struct IntegerUse {
  enum class Kind {
    none,    // they are not read
    data,    // they only decide values: no position, no number of iterations, no lock
    index,   // they are positions themselves, at best below `bound`
    counter, // the kernel changes them in place: a sum, a counter, a lock
    unknown, // anything else
  } kind = Kind::none;
  std::optional<int64_t> bound; // the least extent that they index
};

/// The use of each argument; `none` for scalars and floating-point views. Nothing if the kernel does not trace, whose
/// errors compiling reports.
std::optional<std::vector<IntegerUse>> integerUses(const Kernel &kernel, const std::vector<ArgFacts> &args,
                                                   const std::string &config);

} // namespace kiln::tools
