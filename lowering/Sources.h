// Source lines of a kernel: those of a stage's printed text, and explanations by line. MLIR has them as locations of
// operations, LLVM IR as debug metadata, PTX and assembly as `.loc`.

#pragma once

#include "mlir/IR/Location.h"
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

// --- Explanations ----------------------------------------------------------------------------------------------------

/// A target's choices for a kernel (layouts, instructions), explained to the user at the kernel's lines.
class Explanation {
public:
  /// Adds a line about the whole kernel.
  void add(const std::string &text) { general.push_back(text); }
  /// Adds text about a line of the kernel.
  void add(mlir::Location where, const std::string &text);
  /// Adds text about a line that a user should know, even without asking for an explanation.
  void warn(mlir::Location where, const std::string &text);
  /// The texts of warn(), a line each: `file:line: warning: …`.
  const std::string &warnings() const { return warned; }

  /// A line of the kernel, and the texts about it.
  struct Line {
    std::string file;
    unsigned number;
    std::vector<std::string> texts;
  };
  /// The texts about the whole kernel.
  const std::vector<std::string> &wholeKernel() const { return general; }
  /// By file in the order of first mention, then by number.
  const std::vector<Line> &byLine() const { return lines; }

  bool empty() const { return general.empty() && lines.empty(); }
  /// The text about the kernel, then that about each line, in order.
  std::string text() const;

private:
  std::vector<std::string> general;
  std::vector<Line> lines;
  std::string warned;
};

} // namespace kiln::lowering
