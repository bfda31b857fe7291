// Errors of the compiler as text, and the two kinds there are.

#pragma once

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Operation.h"

#include <string>

namespace kiln::lowering {

/// An error that the kernel's author can cure: a limit exceeded, something not supported. Every other error that a pass
/// reports is taken for a mistake of the compiler. It stands at the operation's line; where that is lost, as it is when
/// equal constants become one, at that of the first operation that uses it.
mlir::InFlightDiagnostic emitUserError(mlir::Operation *op);

/// `file:line` of the first source line that a location knows, `?` without one.
std::string sourceLine(mlir::Location loc);
/// Whether it knows one.
bool hasLine(mlir::Location loc);

/// Collects the errors of this thread in a context while it lives, with notes, one a line: `file:line: error: …`. The
/// operation itself is not printed behind each, as MLIR does by default: it can be thousands of lines.
class ErrorCollector {
public:
  explicit ErrorCollector(mlir::MLIRContext *context);
  ~ErrorCollector();
  const std::string &text() const { return collected; }
  /// The warnings, one a line: `file:line: warning: …`.
  const std::string &warnings() const { return warned; }
  /// Whether all of them came from emitUserError.
  bool onlyUserErrors() const { return userErrors > 0 && internalErrors == 0; }

private:
  void collect(mlir::Diagnostic &diagnostic);
  mlir::MLIRContext *const context;
  const bool printedOps; // what the context did before
  std::string collected, warned;
  int userErrors = 0, internalErrors = 0;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace kiln::lowering
