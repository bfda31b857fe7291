// Compiler errors as text: user errors and internal errors, with files that reproduce the latter.

#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Operation.h"
#include "mlir/Pass/PassManager.h"

#include <cstdint>
#include <string>

namespace kiln::lowering {

/// Reports an error that the kernel's author can fix: a limit is exceeded, or something is not supported. Every other
/// error of a pass is an internal error. Its line is that of the operation. If the operation has lost its line, as when
/// equal constants are merged, it is that of the first user.
mlir::InFlightDiagnostic emitUserError(mlir::Operation *op);

/// `file:line` of the first source line in a location, `?` without one.
std::string sourceLine(mlir::Location loc);
/// Whether a location has a source line.
bool hasLine(mlir::Location loc);

/// Collects the errors of this thread in a context during its lifetime, with notes, one per line: `file:line: error:
/// …`. It does not print the operation, as MLIR does by default, because that can be thousands of lines.
class ErrorCollector {
public:
  explicit ErrorCollector(mlir::MLIRContext *context);
  ~ErrorCollector();
  const std::string &text() const { return collected; }
  /// The warnings, one per line: `file:line: warning: …`.
  const std::string &warnings() const { return warned; }
  /// Whether all errors came from emitUserError.
  bool onlyUserErrors() const { return userErrors > 0 && internalErrors == 0; }

private:
  void collect(mlir::Diagnostic &diagnostic);
  mlir::MLIRContext *const context;
  const bool printedOps; // the context's setting before
  std::string collected, warned;
  int userErrors = 0, internalErrors = 0;
  mlir::ScopedDiagnosticHandler handler;
};

// --- Reproducers -----------------------------------------------------------------------------------------------------

// Reproducers: files that repeat a compilation that failed because of a bug in the compiler.
//
// They are written to KILN_DUMP, otherwise to the temporary folder, which other users may share. So a file is always
// created new, and readable by this user alone. Their number is limited: one per distinct error, and a maximum per
// process and per folder. Their size is limited, too.

inline constexpr int maxReproducersOfAProcess = 8, maxReproducersInAFolder = 32;
inline constexpr int64_t maxReproducerBytes = int64_t(4) << 20;

/// Writes the module `original` and the pipeline of `pm` for a failure with the message `error`, once per message in a
/// process. Returns the command, `run it again with: kiln-opt --run-reproducer FILE`, or the reason why there is none,
/// `no reproducer was written: …`.
std::string writeReproducer(mlir::PassManager &pm, mlir::ModuleOp original, const std::string &kernel,
                            const std::string &error);

} // namespace kiln::lowering
