// Shared by the tests of the language: a context with its dialects, facts of arguments, and the program that a kernel
// becomes, as text.

#pragma once

#include "dialect/dsl/Trace.h"

#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace kiln::testing {

/// A context with everything loaded that a trace needs.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// A dense view argument.
ArgFacts view(Type type, Shape extents);
ArgFacts scalar(Type type);

/// The lines of the traced function's body after canonicalisation and common-subexpression elimination, without
/// its terminator, with the numbers of constants in place of their names; the text of the first error when the trace
/// fails.
std::string programOf(const Kernel &kernel, const std::vector<ArgFacts> &args, const std::string &config = "");
template <class... P> std::string program(void (*function)(P...), const std::vector<ArgFacts> &args) {
  return programOf(kernel("k", function), args);
}

/// The traced module as it is, printed with its function's signature; the text of the first error when it fails.
std::string moduleOf(const Kernel &kernel, const Specialisation &facts, const std::string &config = "");

} // namespace kiln::testing
