// A target's choices for a kernel (layouts, instructions), explained to the user at the kernel's lines.

#pragma once

#include "mlir/IR/Location.h"

#include <string>
#include <vector>

namespace kiln::lowering {

class Explanation {
public:
  /// Adds a line about the whole kernel.
  void add(const std::string &text) { general.push_back(text); }
  /// Adds text about a line of the kernel.
  void add(mlir::Location where, const std::string &text);

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
};

} // namespace kiln::lowering
