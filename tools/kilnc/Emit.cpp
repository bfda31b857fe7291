// Compiles a module to the requested stage; lists kernels; parses layouts for --picture.

#include "tools/kilnc/Emit.h"

#include "dialect/dsl/Nearest.h"
#include "dialect/simt/layout/Picture.h"
#include "lowering/Driver.h"
#include "runtime/KernelImage.h"
#include "tools/kilnc/Trace.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace kiln::tools {

// --- Stages ---------------------------------------------------------------------------------------------------------

/// All stages of --emit for a kind of target. The reference backend has all of a CPU's. Without a linker, a GPU's
/// backend lacks only the last one, cubin.
static std::vector<std::string> stagesOf(bool gpu) {
  std::vector<std::string> names = {"tile"};
  for (const lowering::Stage &stage : lowering::openBackend(gpu ? "sm_80" : "cpu:generic")->stages())
    names.emplace_back(stage.name);
  if (gpu)
    names.emplace_back("cubin");
  return names;
}

std::string stageNames(bool ofGpu) { return fmt::format("{}", fmt::join(stagesOf(ofGpu), ", ")); }

bool isBinary(const std::string &stage) { return stage == "obj" || stage == "cubin"; }

std::shared_ptr<const lowering::Backend> backendFor(const std::string &target, const std::string &stage,
                                                    bool isReference) {
  const auto backend = lowering::openBackend(target); // throws for an unknown name
  const bool isGpu = target.starts_with("sm_");
  const std::vector<std::string> stages = stagesOf(isGpu);
  const auto has = [&](const std::vector<std::string> &names) {
    return std::find(names.begin(), names.end(), stage) != names.end();
  };
  if (!has(stages))
    throw Error(has(stagesOf(!isGpu))
                    ? fmt::format("--emit={} requires a {}, but got --target={}", stage,
                                  isGpu ? "CPU, --target=cpu" : "GPU, such as --target=sm_90a", target)
                    : unknownName("stage", stage, stages) + " for --emit with --target=" + target);
  if (isGpu && isReference)
    throw Error(fmt::format("--generic requires a CPU as --target, but got '{}'", target));
  const std::string variant = isGpu ? ":cubin" : ":generic";
  if (target.ends_with(variant) || (isGpu ? stage != "cubin" : !isReference && stage != "linalg"))
    return backend;
  llvm::StringRef processor = target;
  processor.consume_back(":amx"); // the reference backend ignores it
  return lowering::openBackend(processor.str() + variant);
}

namespace {
/// Ends the compilation after the requested stage.
struct StageReached {
  std::string text;
};
} // namespace

std::string emit(mlir::ModuleOp module, const std::string &stage, const lowering::Backend &backend,
                 const std::string &config) {
  if (stage == "tile") // unchanged, with locations if --mlir-print-debuginfo is given
    return lowering::stageText(module) + "\n";
  lowering::Explanation explanation;
  const auto warn = llvm::scope_exit([&] { sayWarnings(explanation, config); });
  try {
    const auto reach = [&](const std::string &name, const std::string &text) {
      if (name == stage)
        throw StageReached{text};
    };
    // An object needs no stages before it, which would double the work.
    const bool isObject = stage == "obj";
    const std::vector<char> code =
        lowering::compile(module, backend, isObject ? lowering::StageSink() : reach, isObject ? nullptr : &explanation);
    if (!isObject)
      throw Error(fmt::format("the compiler passed no stage '{}'", stage), Fault::internal);
    return std::string(code.begin(), code.end());
  } catch (StageReached &reached) {
    return isBinary(stage) || reached.text.ends_with('\n') ? reached.text : reached.text + '\n';
  }
}

std::string explained(mlir::ModuleOp module, const lowering::Backend &backend) {
  std::string text = lowering::explain(module, backend);
  if (text.empty())
    throw Error(
        fmt::format("--explain requires a target that is not the reference backend, but got '{}'", backend.name()));
  return text;
}

// --- The list of kernels --------------------------------------------------------------------------------------------

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
  for (const KernelImage *const image : findImages(kernel))
    lines.push_back(
        {image->target, "code", image->argumentText() + (image->config.empty() ? "" : ", ") + image->configText()});
  return lines;
}

/// Columns are as wide as a kernel's longest name:
///
///     softmax
///       x       view    (N, C)
///       out     view    (N, C)
///       rows=4  field   rows a program (tuned among 1, 2, 4, 8, 16, 32)
///
/// A kernel of a file of images has a line for each image.
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

// --- Pictures -------------------------------------------------------------------------------------------------------

/// A tile in shared memory, after the word `shared`.
static std::string pictureOfShared(llvm::StringRef text) {
  const auto wrong = [&] {
    return Error(fmt::format(
        "'shared {}' is no tile for --picture; expected 'shared 64x64xbf16', with ' columns' if its columns "
        "are contiguous",
        text.str()));
  };
  auto [tile, order] = text.trim().split(' ');
  const auto [sizes, type] = tile.rsplit('x');
  const auto [rows, columns] = sizes.split('x');
  int64_t extents[2];
  order = order.trim();
  if (rows.getAsInteger(10, extents[0]) || columns.getAsInteger(10, extents[1]) ||
      (!order.empty() && order != "columns"))
    throw wrong();
  const int64_t bytes = bytesOf(typeNamed(type.str()));
  for (const int64_t extent : extents)
    if (extent < 1 || extent > 1024)
      throw Error(fmt::format("expected extents from 1 to 1024 for --picture, but got {}", extent));
  const unsigned inner = order.empty() ? 1 : 0;
  const auto swizzled = simt::swizzledLayout(extents, inner, static_cast<unsigned>(8 * bytes));
  if (!swizzled || swizzled->width < 16)
    throw Error(fmt::format(
        "'shared {}' has no swizzled layout for --picture; expected rows of at least 16 bytes, and a number "
        "of rows that is at least 8 or a power of two",
        text.str()));
  return simt::picture(*swizzled);
}

std::string drawLayout(const std::string &text) {
  llvm::StringRef rest = llvm::StringRef(text).trim();
  if (rest.consume_front("shared "))
    return pictureOfShared(rest);
  std::string reason;
  const auto layout = simt::TileLayout::parse(rest, [&](const llvm::Twine &why) { reason = why.str(); });
  if (llvm::failed(layout))
    throw Error(fmt::format("for --picture: {}", reason));
  return simt::picture(*layout);
}

} // namespace kiln::tools
