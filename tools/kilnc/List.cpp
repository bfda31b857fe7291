// A readable list of kernels, with columns as wide as a kernel's longest name.
//
//     softmax
//       x       view    (N, C)
//       out     view    (N, C)
//       rows=4  field   rows a program (tuned among 1, 2, 4, 8, 16, 32)

#include "tools/kilnc/List.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::tools {

namespace {
/// An argument or a field.
struct Line {
  std::string name;
  const char *kind;
  std::string about;
};
} // namespace

/// A field's description, and the values that --tune tries.
static std::string aboutField(const Field &field) {
  if (field.candidates.empty())
    return field.about;
  return fmt::format("{}{}(tuned among {}{})", field.about, field.about.empty() ? "" : " ",
                     fmt::join(field.candidates, ", "), field.changesResults ? "; changes results" : "");
}

static const char *kindOf(const Kernel::Parameter &parameter) {
  switch (parameter.kind) {
  case Kernel::Parameter::Kind::view:
    return "view";
  case Kernel::Parameter::Kind::optional:
    return "view?";
  case Kernel::Parameter::Kind::list:
    return "views";
  default:
    return "scalar";
  }
}

static std::vector<Line> linesOf(const Kernel &kernel) {
  std::vector<Line> lines;
  for (const Kernel::Parameter &parameter : kernel.parameters)
    lines.push_back({parameter.name.empty() ? fmt::format("argument {}", lines.size()) : parameter.name,
                     kindOf(parameter), parameter.about});
  for (const Field &field : kernel.fields)
    lines.push_back({fmt::format("{}={}", field.name, field.byDefault), "field", aboutField(field)});
  return lines;
}

std::string listOf(const std::vector<const Kernel *> &kernels) {
  std::string list;
  for (const Kernel *kernel : kernels) {
    list += kernel->name + "\n";
    const std::vector<Line> lines = linesOf(*kernel);
    size_t width = 0;
    for (const Line &line : lines)
      width = std::max(width, line.name.size());
    for (const Line &line : lines) {
      list += fmt::format("  {:<{}}  {:<6}  {}", line.name, width, line.kind, line.about);
      list.erase(list.find_last_not_of(' ') + 1);
      list += '\n';
    }
  }
  return list;
}

} // namespace kiln::tools
