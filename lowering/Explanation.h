// What a target made of a kernel, told to people: by the kernel's lines.

#pragma once

#include "mlir/IR/Location.h"

#include <string>
#include <vector>

namespace kiln::lowering {

class Explanation {
public:
  /// Something about the kernel as a whole, a line of text.
  void add(const std::string &text) { general.push_back(text); }
  /// Something about what stands at a line of the kernel.
  void add(mlir::Location where, const std::string &text);

  bool empty() const { return general.empty() && lines.empty(); }
  /// What is said of the kernel, then what is said of each line, lines in their order.
  std::string text() const;

private:
  struct Line {
    std::string file;
    unsigned number;
    std::vector<std::string> texts;
  };
  std::vector<std::string> general;
  std::vector<Line> lines; // by file in the order of their first mention, then by number
};

} // namespace kiln::lowering
