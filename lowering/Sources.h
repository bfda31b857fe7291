// Which line of a kernel each line of a stage comes from: printed MLIR by the locations of its operations, LLVM IR by
// its debug metadata, PTX and assembly by their `.loc`.

#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/IR/OperationSupport.h"

#include <string>
#include <vector>

namespace kiln::lowering {

/// A text, and for each of its lines the kernel's `file:line` that it comes from; empty where there is none.
struct SourcedText {
  std::string text;
  std::vector<std::string> sources;
};

/// The text of an operation as stageText() prints it.
SourcedText sourced(mlir::Operation *op, mlir::OpPrintingFlags flags);
/// A text of LLVM IR.
SourcedText sourcedIr(const std::string &text);
/// A text of PTX or of an assembly.
SourcedText sourcedListing(const std::string &text);

} // namespace kiln::lowering
