// Formats the compiler's errors.

#include "lowering/Diagnostics.h"

#include <optional>

namespace kiln::lowering {

static constexpr llvm::StringLiteral userErrorMark = "kiln.user";

/// The location of the first operation with a source line, among this one and, transitively, its users.
static mlir::Location lineNear(mlir::Operation *op) {
  llvm::SmallVector<mlir::Operation *> found = {op};
  for (size_t next = 0; next < found.size() && next < 64; ++next) {
    if (hasLine(found[next]->getLoc()))
      return found[next]->getLoc();
    // getUsers lists the last user first.
    for (mlir::Operation *user : llvm::reverse(llvm::to_vector(found[next]->getUsers())))
      if (!llvm::is_contained(found, user))
        found.push_back(user);
  }
  return op->getLoc();
}

mlir::InFlightDiagnostic emitUserError(mlir::Operation *op) {
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(lineNear(op));
  diagnostic.getUnderlyingDiagnostic()->getMetadata().push_back(mlir::DiagnosticArgument(userErrorMark));
  return diagnostic;
}

std::string sourceLine(mlir::Location loc) {
  std::optional<mlir::FileLineColRange> found;
  loc->walk([&](mlir::Location part) {
    found = llvm::dyn_cast<mlir::FileLineColRange>(llvm::cast<mlir::LocationAttr>(part));
    return found && *found ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  if (!found || !*found)
    return "?";
  return (*found).getFilename().str() + ":" + std::to_string((*found).getStartLine());
}

bool hasLine(mlir::Location loc) { return sourceLine(loc) != "?"; }

ErrorCollector::ErrorCollector(mlir::MLIRContext *context)
    : context(context), printedOps(context->shouldPrintOpOnDiagnostic()),
      handler(context, [this](mlir::Diagnostic &diagnostic) { collect(diagnostic); }) {
  context->printOpOnDiagnostic(false);
}

ErrorCollector::~ErrorCollector() { context->printOpOnDiagnostic(printedOps); }

void ErrorCollector::collect(mlir::Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning)
    warned += sourceLine(diagnostic.getLocation()) + ": warning: " + diagnostic.str() + "\n";
  if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
    return;
  const bool user = llvm::any_of(diagnostic.getMetadata(), [](mlir::DiagnosticArgument &argument) {
    return argument.getKind() == mlir::DiagnosticArgument::DiagnosticArgumentKind::String &&
           argument.getAsString() == userErrorMark;
  });
  ++(user ? userErrors : internalErrors);
  std::string text = sourceLine(diagnostic.getLocation()) + ": error: " + diagnostic.str() + "\n";
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    text += sourceLine(note.getLocation()) + ": note: " + note.str() + "\n";
  if (collected.find(text) == std::string::npos) // a line may make a mistake twice
    collected += text;
}

} // namespace kiln::lowering
