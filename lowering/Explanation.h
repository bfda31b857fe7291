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

  bool empty() const { return general.empty() && lines.empty(); }
  /// The text about the kernel, then that about each line, in order.
  std::string text() const;

private:
  struct Line {
    std::string file;
    unsigned number;
    std::vector<std::string> texts;
  };
  std::vector<std::string> general;
  std::vector<Line> lines; // by file in the order of first mention, then by number
};

} // namespace kiln::lowering
