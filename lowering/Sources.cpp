// Maps the lines of printed code to the kernel's source lines, and sorts explanations by these.

#include "lowering/Sources.h"

#include "lowering/Diagnostics.h"

#include "mlir/IR/AsmState.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln::lowering {

/// The lines of a text. A line feed at its end does not begin another line.
static llvm::SmallVector<llvm::StringRef> linesOf(llvm::StringRef text) {
  text.consume_back("\n");
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  return lines;
}

SourcedText sourced(mlir::Operation *op, mlir::OpPrintingFlags flags) {
  mlir::AsmState::LocationMap places;
  mlir::AsmState state(op, flags.printNameLocAsPrefix(), &places);
  SourcedText result;
  llvm::raw_string_ostream stream(result.text);
  op->print(stream, state);
  result.sources.resize(linesOf(result.text).size());
  for (const auto &[inner, place] : places) {
    const size_t line = place.first - 1; // counted from 1
    if (inner != op && hasLine(inner->getLoc()) && line < result.sources.size())
      result.sources[line] = sourceLine(inner->getLoc());
  }
  return result;
}

// --- LLVM IR ---------------------------------------------------------------------------------------------------------

/// The text after `key` up to a comma or a closing bracket, without quotes: `5` for `line: ` in
/// `!DILocation(line: 5, scope: !3)`.
static llvm::StringRef fieldOf(llvm::StringRef node, llvm::StringRef key) {
  const size_t at = node.find(key);
  return at == llvm::StringRef::npos
             ? ""
             : node.substr(at + key.size()).take_until([](char c) { return c == ',' || c == ')'; }).trim("\"");
}

static std::string joined(llvm::StringRef folder, llvm::StringRef file) {
  return folder.empty() || folder == "." || file.starts_with("/") ? file.str() : (folder + "/" + file).str();
}

SourcedText sourcedIr(const std::string &text) {
  const llvm::SmallVector<llvm::StringRef> lines = linesOf(text);
  llvm::DenseMap<llvm::StringRef, llvm::StringRef> nodes; // `!7` and its definition
  for (const llvm::StringRef line : lines)
    if (line.starts_with("!") && line.contains(" = "))
      nodes[line.split(" = ").first] = line.split(" = ").second;
  SourcedText result{text, std::vector<std::string>(lines.size())};
  for (size_t i = 0; i < lines.size(); ++i) {
    const llvm::StringRef location = nodes.lookup(fieldOf(lines[i], ", !dbg "));
    const llvm::StringRef file = nodes.lookup(fieldOf(nodes.lookup(fieldOf(location, "scope: ")), "file: "));
    const llvm::StringRef number = fieldOf(location, "line: ");
    if (location.contains("!DILocation(") && !file.empty() && number != "0")
      result.sources[i] = joined(fieldOf(file, "directory: "), fieldOf(file, "filename: ")) + ":" + number.str();
  }
  return result;
}

// --- Listings --------------------------------------------------------------------------------------------------------

SourcedText sourcedListing(const std::string &text) {
  const llvm::SmallVector<llvm::StringRef> lines = linesOf(text);
  llvm::DenseMap<unsigned, std::string> files;
  for (llvm::StringRef line : lines) { // `.file 1 "folder" "name"`, or only the name; in PTX they are at the end
    line = line.trim();
    unsigned number = 0;
    if (!line.consume_front(".file") || (line = line.trim()).consumeInteger(10, number))
      continue;
    llvm::SmallVector<llvm::StringRef> parts;
    line.split(parts, '"');
    if (parts.size() >= 5)
      files[number] = joined(parts[1], parts[3]);
    else if (parts.size() >= 3)
      files[number] = parts[1].str();
  }
  SourcedText result{text, std::vector<std::string>(lines.size())};
  std::string current;
  for (size_t i = 0; i < lines.size(); ++i) {
    llvm::StringRef line = lines[i].trim();
    if (line.consume_front(".loc")) {
      unsigned file = 0, number = 0;
      const bool isLine =
          !(line = line.trim()).consumeInteger(10, file) && !(line = line.trim()).consumeInteger(10, number);
      current = isLine && number ? files.lookup(file) + ":" + std::to_string(number) : "";
    } else if (!line.empty() && !line.starts_with(".") && !line.starts_with("//") && !line.starts_with("#")) {
      result.sources[i] = current;
    }
    if (line.starts_with(".cfi_endproc") || line.starts_with(".Lfunc_end") || lines[i] == "}")
      current.clear(); // the end of a function
  }
  return result;
}

// --- Explanations ----------------------------------------------------------------------------------------------------

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

void Explanation::warn(mlir::Location where, const std::string &text) {
  add(where, "warning: " + text);
  warned += sourceLine(where) + ": warning: " + text + "\n";
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
