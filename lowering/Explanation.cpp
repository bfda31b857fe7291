// Explanations by source line.

#include "lowering/Explanation.h"

#include "lowering/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"

namespace kiln::lowering {

void Explanation::add(mlir::Location where, const std::string &text) {
  const std::string source = sourceLine(where);
  const auto [file, number] = llvm::StringRef(source).rsplit(':');
  Line line{file.str(), 0, {text}};
  (void)number.getAsInteger(10, line.number);
  const auto first = llvm::find_if(lines, [&](const Line &other) { return other.file == line.file; });
  auto place = std::find_if(first, lines.end(),
                            [&](const Line &other) { return other.file != line.file || other.number >= line.number; });
  if (place != lines.end() && place->file == line.file && place->number == line.number)
    place->texts.push_back(text);
  else
    lines.insert(place, std::move(line));
}

std::string Explanation::text() const {
  std::string text;
  for (const std::string &sentence : general)
    text += sentence + "\n";
  for (const Line &line : lines) {
    text += "\n" + (line.file.empty() ? "?" : line.file) + ":" + std::to_string(line.number) + "\n";
    for (const std::string &sentence : line.texts)
      text += "  " + sentence + "\n";
  }
  return text;
}

} // namespace kiln::lowering
