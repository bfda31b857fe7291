// Maps the lines of a stage's text to lines of the kernel: for MLIR by the locations of operations, for LLVM IR by its
// debug metadata, for PTX and assembly by `.loc`.

#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/IR/OperationSupport.h"

#include <string>
#include <vector>

namespace kiln::lowering {

/// A text, and for each of its lines the `file:line` of the kernel; empty if it is unknown.
struct SourcedText {
  std::string text;
  std::vector<std::string> sources;
};

/// An operation, as stageText() prints it, with its source lines.
SourcedText sourced(mlir::Operation *op, mlir::OpPrintingFlags flags);
/// LLVM IR with its source lines.
SourcedText sourcedIr(const std::string &text);
/// PTX or assembly with its source lines.
SourcedText sourcedListing(const std::string &text);

} // namespace kiln::lowering
