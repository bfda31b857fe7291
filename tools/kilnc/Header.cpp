// Writes the header: a struct for each view, one of all arguments, and their requirements.

#include "tools/kilnc/Archive.h"

#include "dialect/dsl/Expansion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>

namespace kiln::tools {

/// Reserved words of C and C++.
static constexpr const char *keywords =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
    "co_await "
    "co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete "
    "do "
    "double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast "
    "requires restrict return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void "
    "volatile "
    "wchar_t while xor xor_eq";

std::string fieldOf(const Kernel &kernel, size_t index) {
  std::string name = identifierOf(kernel.parameters[index].name);
  if (name.empty())
    return fmt::format("argument_{}", index);
  std::istringstream words(keywords);
  std::vector<std::string> taken(std::istream_iterator<std::string>(words), {});
  for (const Kernel::Parameter &other : kernel.parameters)
    if (&other != &kernel.parameters[index])
      taken.push_back(other.name);
  while (std::find(taken.begin(), taken.end(), name) != taken.end())
    name += "_";
  return name;
}

/// The C type of elements; for narrow floats, of their bits.
static std::string typeOf(Type type) {
  if (type == f32 || type == f64)
    return type == f32 ? "float" : "double";
  const bool isSigned = infoOf(type).kind == TypeInfo::signedInteger;
  return fmt::format("{}int{}_t", isSigned ? "" : "u", 8 * bytesOf(type));
}

/// The text as a comment, in lines of at most 110 columns.
static std::string commentOf(const std::string &text) {
  std::istringstream words(text);
  std::string comment = "\n/*";
  size_t column = 2;
  for (std::string word; words >> word; column += word.size() + 1) {
    for (size_t at; (at = word.find("*/")) != std::string::npos;) // it would end the comment
      word.erase(at, 1);
    if (column + word.size() > 110) {
      comment += "\n  ";
      column = 2;
    }
    comment += " " + word;
  }
  return comment + " */\n";
}

/// The facts that a launch checks: `extent 64 in dimension 1`.
static std::vector<std::string> factsOf(const Signature::Parameter &parameter) {
  std::vector<std::string> facts;
  for (size_t i = 0; i < parameter.extents.size(); ++i) {
    if (parameter.extents[i] != Signature::dynamic)
      facts.push_back(fmt::format("extent {} in dimension {}", parameter.extents[i], i));
    if (parameter.strides[i] != Signature::dynamic)
      facts.push_back(fmt::format("stride {} in dimension {}", parameter.strides[i], i));
  }
  if (parameter.stridesBy16 && parameter.extents.size() > 1)
    facts.emplace_back("other strides divisible by 16");
  if (parameter.extentBy16)
    facts.emplace_back("a last extent divisible by 16");
  if (parameter.alignment > 1)
    facts.push_back(fmt::format("memory aligned to {} bytes", parameter.alignment));
  if (parameter.fits32)
    facts.emplace_back("extents up to 2^30 and strides from 0 to 2^31 - 1 bytes");
  return facts;
}

/// The comment and the struct of argument `index`; for a scalar only the comment.
static std::string argumentOf(const ArchivedKernel &kernel, size_t index) {
  const Kernel::Parameter &parameter = kernel.kernel.parameters[index];
  const Signature::Parameter &first = kernel.codes[0].signature.parameters[index];
  const std::string field = fieldOf(kernel.kernel, index);
  std::string text = field + (parameter.about.empty() ? "" : " " + parameter.about) + ": " + nameOf(first.type);
  const char *values = first.type == boolean                            ? ", 0 or 1"
                       : isFloat(first.type) && bytesOf(first.type) < 4 ? ", bits"
                                                                        : "";
  if (!first.isView)
    return commentOf(text + fmt::format(" scalar{}.", values));
  const bool written = std::any_of(kernel.codes.begin(), kernel.codes.end(),
                                   [&](const TargetCode &code) { return code.signature.parameters[index].written; });
  text += fmt::format("{}, {}.", values, written ? "which the kernel may write" : "which the kernel only reads");
  for (const bool isGpu : {false, true}) {
    const auto code = std::find_if(kernel.codes.begin(), kernel.codes.end(),
                                   [&](const TargetCode &each) { return each.isGpu == isGpu; });
    if (code == kernel.codes.end())
      continue;
    if (const auto facts = factsOf(code->signature.parameters[index]); !facts.empty())
      text += fmt::format(" On {}: {}.", isGpu ? "GPUs" : "CPUs", fmt::join(facts, ", "));
  }
  return commentOf(text) +
         fmt::format("typedef struct {{\n  {}{} *data;\n  int64_t extents[{}], strides[{}];\n}} {}_{}_view;\n",
                     written ? "" : "const ", typeOf(first.type), first.extents.size(), first.extents.size(),
                     kernel.name, field);
}

/// `x and y, y and z`: the views that must not overlap.
static std::string disjointText(const ArchivedKernel &kernel) {
  std::vector<std::string> pairs;
  for (const auto &[first, second] : kernel.codes[0].signature.disjoint)
    pairs.push_back(fmt::format("{} and {}", fieldOf(kernel.kernel, first), fieldOf(kernel.kernel, second)));
  return pairs.empty() ? "" : fmt::format(" These must not overlap: {}.", fmt::join(pairs, ", "));
}

/// `dimension 0 of x and dimension 0 of y`: the extents that must be equal.
static std::string equalText(const ArchivedKernel &kernel) {
  std::vector<std::string> pairs;
  for (const auto &[first, firstAxis, second, secondAxis] : kernel.codes[0].signature.equalExtents)
    pairs.push_back(fmt::format("dimension {} of {} and {} of {}", firstAxis, fieldOf(kernel.kernel, first), secondAxis,
                                fieldOf(kernel.kernel, second)));
  return pairs.empty() ? "" : fmt::format(" These extents must be equal: {}.", fmt::join(pairs, ", "));
}

static constexpr const char *
    runText =
       "Runs the kernel on the CPU: grid[0] x grid[1] x grid[2] programs. Returns null, or the text of an error, "
       "which lives until the thread's next call: which argument is wrong, which check of the kernel failed, or "
       "that memory is lacking. `parallel` may be null. Otherwise it calls work(state) on as many threads as it "
       "likes, and returns when these calls have returned.",
   *launchText = "Launches the kernel on a CUstream of the calling thread's CUDA context; `data` are device pointers. "
                 "Returns null, or the text of an error, which lives until the thread's next call. The first launch in "
                 "a context loads the code.",
   *waitText = " It waits for the stream, because the kernel checks or prints.";

std::string headerOf(const ArchivedKernel &kernel) {
  std::vector<std::string> targets;
  bool onCpu = false, onGpu = false, waits = false;
  for (const TargetCode &code : kernel.codes) {
    targets.push_back(code.target);
    (code.isGpu ? onGpu : onCpu) = true;
    waits |= code.isGpu &&
             std::string_view(code.code.data(), code.code.size()).find(abi::consoleVariable) != std::string_view::npos;
  }
  std::string guard = "KILN_" + kernel.name + "_H";
  std::transform(guard.begin(), guard.end(), guard.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
  std::string text = commentOf(fmt::format("The kernel {}{}{}, compiled by kilnc for {}. Strides count elements.{}{}",
                                           kernel.kernel.name, kernel.config.empty() ? "" : " with ", kernel.config,
                                           fmt::join(targets, ", "), disjointText(kernel), equalText(kernel)))
                         .substr(1); // the empty line
  text += fmt::format(
      "#ifndef {0}\n#define {0}\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n", guard);
  std::string fields;
  for (size_t i = 0; i < kernel.kernel.parameters.size(); ++i) {
    const std::string field = fieldOf(kernel.kernel, i);
    text += argumentOf(kernel, i);
    const Signature::Parameter &parameter = kernel.codes[0].signature.parameters[i];
    fields += fmt::format("  {} {};\n", parameter.isView ? kernel.name + "_" + field + "_view" : typeOf(parameter.type),
                          field);
  }
  if (fields.empty())
    fields = "  char none;\n";
  text += fmt::format("\ntypedef struct {{\n{}}} {}_arguments;\n", fields, kernel.name);
  if (onCpu)
    text +=
        commentOf(runText) + fmt::format("const char *{0}_run(const {0}_arguments *arguments, const int64_t grid[3],\n"
                                         "    void (*parallel)(void (*work)(void *state), void *state));\n",
                                         kernel.name);
  if (onGpu)
    text +=
        commentOf(launchText + std::string(waits ? waitText : "")) +
        fmt::format("const char *{0}_launch(void *stream, const {0}_arguments *arguments, const int64_t grid[3]);\n",
                    kernel.name);
  return text + "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
}

} // namespace kiln::tools
